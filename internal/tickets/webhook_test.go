package tickets_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakenet"
	"github.com/caprouter/caprouter/internal/tickets"
)

const secret = "a secret of more than 24 bytes"

// webhookMessage is one message as received.
type webhookMessage struct {
	ID, Type, Title string
	Count           int
	signed          bool
}

// webhookServer is a webhook server. It answers with the statuses in turn, and repeats the last
// one.
type webhookServer struct {
	*httptest.Server
	messages chan webhookMessage
}

func newWebhookServer(t *testing.T, statuses ...int) *webhookServer {
	t.Helper()
	in := &webhookServer{messages: make(chan webhookMessage, 100)}
	answers := make(chan int, len(statuses))
	for _, s := range statuses {
		answers <- s
	}
	last := statuses[len(statuses)-1]
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var m struct {
			Type      string    `json:"type"`
			Timestamp time.Time `json:"timestamp"`
			Data      struct {
				Title string `json:"title"`
				Count int    `json:"count"`
			} `json:"data"`
		}
		if err := json.Unmarshal(body, &m); err != nil || m.Timestamp.IsZero() {
			t.Errorf("got body %s (%v)", body, err)
		}
		in.messages <- webhookMessage{r.Header.Get("Webhook-Id"), m.Type, m.Data.Title, m.Data.Count, verified(r, body)}
		status := last
		select {
		case status = <-answers:
		default:
		}
		if status == http.StatusFound {
			w.Header().Set("Location", in.URL+"/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(in.Close)
	return in
}

// verified checks the signature as specified.
func verified(r *http.Request, body []byte) bool {
	id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	if _, err := strconv.ParseInt(at, 10, 64); err != nil || id == "" || r.Header.Get("Content-Type") != "application/json" {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), want)
}

func (in *webhookServer) next(t *testing.T) webhookMessage {
	t.Helper()
	l := testkit.Receive(t, in.messages)
	if !l.signed {
		t.Errorf("message %+v: got no valid signature, want one", l)
	}
	return l
}

// newWebhookFixture returns a service that sends to the URL, and the outcomes of its deliveries.
func newWebhookFixture(t *testing.T, url string) (*serviceFixture, chan string) {
	t.Helper()
	outcomes := make(chan string, 100)
	o := newServiceFixture(t, func(c *tickets.Config) {
		c.Webhook = &tickets.Webhook{URL: url, Secret: llm.NewSecret(secret)}
		c.OnDelivered = func(outcome string) { outcomes <- outcome }
	})
	return o, outcomes
}

// runService runs the service; stop ends it and waits.
func (o *serviceFixture) runService(t *testing.T) (stop func()) {
	t.Helper()
	o.SetBackoff(0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	service := o.Service
	go func() { ended <- service.Run(ctx) }()
	return func() {
		cancel()
		if err := testkit.Receive(t, ended); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// waitDelivered waits until the ticket has no pending deliveries.
func (o *serviceFixture) waitDelivered(t *testing.T, id string) {
	t.Helper()
	testkit.Eventually(t, "the ticket has no pending deliveries", func() bool {
		left, err := tickets.Pending(t.Context(), o.bucket, id)
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 0
	})
}

func TestWebhook_ReceivesNotices(t *testing.T) {
	in := newWebhookServer(t, http.StatusNoContent)
	o, outcomes := newWebhookFixture(t, in.URL)
	stop := o.runService(t)
	defer stop()
	var id string
	for i := range 10 {
		id = o.propose(t, newDemand(fmt.Sprint("r", i), "acme/ana", "book a flight")).TicketID
	}
	if _, err := o.Close(t.Context(), id, "built"); err != nil {
		t.Fatal(err)
	}
	type event struct {
		Type  string
		Count int
	}
	var got []event
	for range 3 {
		l := in.next(t)
		got = append(got, event{l.Type, l.Count})
		if o := testkit.Receive(t, outcomes); o != tickets.DeliveredOK {
			t.Errorf("got outcome %s, want %s", o, tickets.DeliveredOK)
		}
	}
	slices.SortFunc(got, func(a, b event) int { return strings.Compare(b.Type, a.Type) })
	if diff := cmp.Diff([]event{{"ticket.opened", 1}, {"ticket.grown", 10}, {"ticket.closed", 10}}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	o.waitDelivered(t, id)
}

// A failed delivery is repeated under the same id.
func TestWebhook_RetriesDelivery(t *testing.T) {
	in := newWebhookServer(t, http.StatusInternalServerError, http.StatusFound, http.StatusTooManyRequests, http.StatusOK)
	o, outcomes := newWebhookFixture(t, in.URL)
	stop := o.runService(t)
	defer stop()
	p := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	first := in.next(t)
	for range 3 {
		if again := in.next(t); again.ID != first.ID {
			t.Errorf("got id %s, want %s again", again.ID, first.ID)
		}
	}
	for _, want := range []string{tickets.DeliveredFailed, tickets.DeliveredFailed, tickets.DeliveredFailed, tickets.DeliveredOK} {
		if got := testkit.Receive(t, outcomes); got != want {
			t.Errorf("got outcome %s, want %s", got, want)
		}
	}
	o.waitDelivered(t, p.TicketID)
}

// A message is sent to the configured address only, neither to a redirect nor to a proxy of the
// environment. 0.0.0.0 is a loopback address, and net/http does not exempt it from the proxy.
func TestWebhook_FollowsNoRedirect(t *testing.T) {
	trap := fakenet.NewTrap(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:"+trap.Port)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	at := strings.Replace(server.URL, "127.0.0.1", "0.0.0.0", 1)
	proxy, err := http.ProxyFromEnvironment(httptest.NewRequest(http.MethodPost, at, http.NoBody))
	if err != nil || proxy == nil {
		t.Fatalf("environment's proxy: got %v (%v), want one", proxy, err)
	}
	var log bytes.Buffer
	outcomes := make(chan string, 100)
	o := newServiceFixture(t, func(c *tickets.Config) {
		c.Webhook = &tickets.Webhook{URL: at, Secret: llm.NewSecret(secret)}
		c.AllowPlainHTTP = true
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.OnDelivered = func(outcome string) {
			select {
			case outcomes <- outcome:
			default:
			}
		}
	})
	stop := o.runService(t)
	o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	if got := testkit.Receive(t, outcomes); got != tickets.DeliveredFailed {
		t.Errorf("got outcome %s, want %s", got, tickets.DeliveredFailed)
	}
	stop()
	if !strings.Contains(log.String(), "307") {
		t.Errorf("got log %s\nwant the status of the redirect", log.String())
	}
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d redirects followed, want none", n)
	}
}

// A delivery that one process could not complete is completed by the next one, with the original
// text.
func TestWebhook_DeliversAfterRestart(t *testing.T) {
	in := newWebhookServer(t, http.StatusOK)
	o, _ := newWebhookFixture(t, in.URL)
	p := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	o.propose(t, newDemand("r2", "acme/ana", "book two flights"))
	if err := o.EraseRequest(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	o.reopen(t)
	stop := o.runService(t)
	defer stop()
	if l := in.next(t); l.Type != "ticket.opened" || l.Title != "book two flights" {
		t.Errorf("got %+v, want ticket.opened without the erased text", l)
	}
	o.waitDelivered(t, p.TicketID)
}

// After a 410, this process sends no further message, and no delivery is lost.
func TestWebhook_StopsAfter410(t *testing.T) {
	in := newWebhookServer(t, http.StatusGone)
	o, outcomes := newWebhookFixture(t, in.URL)
	var log bytes.Buffer // read after the service has stopped
	o.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.reopen(t)
	stop := o.runService(t)
	p := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	in.next(t)
	if got := testkit.Receive(t, outcomes); got != tickets.DeliveredGone {
		t.Errorf("got outcome %s, want %s", got, tickets.DeliveredGone)
	}
	o.propose(t, newDemand("r2", "acme/ana", "water the plants"))
	stop()
	if want := "no notices until the next start"; strings.Count(log.String(), want) != 1 {
		t.Errorf("got log %s, want %q once", &log, want)
	}
	if n := len(in.messages); n != 0 {
		t.Errorf("got %d more messages, want none", n)
	}
	if left, err := tickets.Pending(t.Context(), o.bucket, p.TicketID); err != nil || len(left) != 1 {
		t.Errorf("got %v (%v), want the message kept for the next start", left, err)
	}
}

// A delivery for a deleted ticket is dropped.
func TestWebhook_SkipsDeletedTicket(t *testing.T) {
	in := newWebhookServer(t, http.StatusOK)
	o, _ := newWebhookFixture(t, in.URL)
	o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	if err := o.EraseRequest(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	stop := o.runService(t)
	defer stop()
	o.propose(t, newDemand("r2", "acme/ana", "water the plants"))
	if l := in.next(t); l.Title != "water the plants" {
		t.Errorf("got %+v, want the message of the other ticket", l)
	}
}

func TestRun_WithoutWebhook(t *testing.T) {
	o := newServiceFixture(t)
	stop := o.runService(t)
	p := o.propose(t, newDemand("r1", "acme/ana", "book a flight"))
	stop()
	if left, err := tickets.Pending(t.Context(), o.bucket, p.TicketID); err != nil || len(left) != 0 {
		t.Errorf("got %v (%v), want no pending delivery", left, err)
	}
}

func TestWebhook_RejectsInvalidConfig(t *testing.T) {
	good := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 24)))
	tests := []struct {
		name, url, secret string
		plain             bool
		want              string // part of the error; "" = no error
	}{
		{name: "https", url: "https://hooks.example/x?y=z", secret: secret},
		{name: "loopback", url: "http://127.0.0.1:9/x", secret: secret},
		{name: "base64", url: "https://hooks.example", secret: "whsec_" + good},
		{name: "plain http", url: "http://hooks.example", secret: secret, want: "over plain http"},
		{name: "plain http, allowed", url: "http://hooks.example", secret: secret, plain: true},
		{name: "no url", secret: secret, want: "not an absolute"},
		{name: "other scheme", url: "ftp://hooks.example", secret: secret, want: "not an absolute"},
		{name: "password", url: "https://a:b@hooks.example", secret: secret, want: "user name or password"},
		{name: "no secret", url: "https://hooks.example", want: "has 0 bytes"},
		{name: "short", url: "https://hooks.example", secret: "short", want: "has 5 bytes"},
		{name: "short base64", url: "https://hooks.example", secret: "whsec_c2hvcnQ=", want: "has 5 bytes"},
		{name: "not base64", url: "https://hooks.example", secret: "whsec_!!", want: "not base64"},
	}
	bucket := newBucket(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tickets.Open(t.Context(), tickets.Config{
				Bucket: bucket, NewID: func() string { return "x" }, AllowPlainHTTP: tt.plain,
				Webhook: &tickets.Webhook{URL: tt.url, Secret: llm.NewSecret(tt.secret)},
			})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got error %v, want one with %q", err, tt.want)
			case err != nil && tt.secret != "" && strings.Contains(err.Error(), tt.secret):
				t.Errorf("got the secret in error %v", err)
			}
		})
	}
}
