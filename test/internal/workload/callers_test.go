package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// newTestCallers returns callers of a router that is the handler.
func newTestCallers(t *testing.T, router http.HandlerFunc) *Callers {
	t.Helper()
	server := httptest.NewServer(router)
	to := NewRouters()
	to.Add(strings.TrimPrefix(server.URL, "http://"))
	t.Cleanup(server.Close)
	return &Callers{Ledger: NewLedger(), Routers: to}
}

func TestSubmitOrder_RecordsAnswer(t *testing.T) {
	const accepted, completed = `{"request_id":"r","status":"accepted","decision":null,"tasks":[],"omitted":[],"data":{}}`,
		`{"request_id":"r","status":"completed","decision":null,"tasks":[],"omitted":[],"data":{}}`
	tests := []struct {
		name     string
		key      string
		status   int
		location string
		body     string

		last      bool // the answer is final
		all, open []string
		odd       int
	}{
		{"accepted", "", 202, requestsPath + "r", accepted, true, []string{"r"}, []string{"r"}, 0},
		{"accepted, with a key", "k", 202, requestsPath + "r", accepted, true, []string{"r"}, []string{"r"}, 0},
		{"end of a request, for a key", "k", 200, "", completed, true, []string{"r"}, nil, 0},
		{"in progress", "k", 409, "", "", false, nil, nil, 0},
		{"conflict without a key", "", 409, "", "", true, nil, nil, 1},
		{"overloaded", "", 503, "", "", false, nil, nil, 0},
		{"too many", "k", 429, "", "", false, nil, nil, 0},
		{"end without a waiting caller", "", 200, "", completed, true, nil, nil, 1},
		{"accepted without a location", "", 202, "", accepted, true, nil, nil, 1},
		{"accepted, and no JSON", "", 202, requestsPath + "r", "{", true, []string{"r"}, []string{"r"}, 1},
		{"broken", "k", 500, "", "", true, nil, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := NewOrder("code review", tt.key, 5, tt.key != "")
			c := newTestCallers(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Idempotency-Key"); got != tt.key {
					t.Errorf("key: got %q, want %q", got, tt.key)
				}
				if body, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(body, o.body) || !bytes.Contains(body, []byte(`"mode":"async"`)) {
					t.Errorf("body: got %s, %v, want the order's, which is asynchronous", body, err)
				}
				if tt.location != "" {
					w.Header().Set("Location", tt.location)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			if got := c.SubmitOrder(t.Context(), o); got != tt.last {
				t.Errorf("SubmitOrder: got %v, want %v", got, tt.last)
			}
			if diff := cmp.Diff([][]string{tt.all, tt.open}, [][]string{c.Ledger.AllRequests(), c.Ledger.OpenRequests()}); diff != "" {
				t.Errorf("all and open (-want +got):\n%s", diff)
			}
			if got := len(c.Ledger.unexpected); got != tt.odd {
				t.Errorf("got %d unexpected answers, want %d: %v", got, tt.odd, c.Ledger.unexpected)
			}
			if tt.key != "" && len(tt.all) > 0 {
				if diff := cmp.Diff(map[string][]string{"k": {"r"}}, c.Ledger.keys); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// The status counts as accepted even if the router is killed before it sends the body.
func TestSubmitOrder_RecordsAcceptanceWithoutBody(t *testing.T) {
	c := newTestCallers(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", requestsPath+"r")
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if c.SubmitOrder(t.Context(), NewOrder("code review", "k", 5, false)) {
		t.Error("SubmitOrder: got true for half an answer, want false")
	}
	if diff := cmp.Diff([]string{"r"}, c.Ledger.OpenRequests()); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

func TestSubmitOrder_ReportsNoAnswerWithoutRouter(t *testing.T) {
	c := newTestCallers(t, nil)
	c.Routers = NewRouters()
	if c.SubmitOrder(t.Context(), NewOrder("code review", "", 5, false)) {
		t.Error("SubmitOrder: got true without a router, want false")
	}
}

func TestFetchRequest_RecordsResponse(t *testing.T) {
	answer := func(status contract.Status) string {
		return fmt.Sprintf(`{"request_id":"r","status":%q,"decision":null,"tasks":[],"omitted":[],"data":{}}`, status)
	}
	tests := []struct {
		name    string
		answers []string // "404" … or a body with 200
		want    string   // of the finding; "" = none
	}{
		{"ended", []string{answer("running"), answer("completed"), answer("completed")}, ""},
		{"missing", []string{"404", answer("completed")}, "without an end"},
		{"changed", []string{answer("completed"), answer("failed")}, "response changed"},
		{"not ended", []string{answer("running")}, "without an end"},
		{"overloaded for a moment", []string{"503", answer("completed")}, ""},
		{"broken", []string{"500", answer("completed")}, "an unexpected answer"},
		{"no JSON", []string{"{", answer("completed")}, "an unexpected answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rest := tt.answers
			c := newTestCallers(t, func(w http.ResponseWriter, _ *http.Request) {
				status := http.StatusOK
				if _, err := fmt.Sscanf(rest[0], "%d", &status); err == nil {
					w.WriteHeader(status)
				}
				_, _ = io.WriteString(w, rest[0])
				rest = rest[1:]
			})
			c.Ledger.recordAccepted("r")
			for range tt.answers {
				c.FetchRequest(t.Context(), "r")
			}
			found := Violations(c.Ledger.RunChecks())
			if tt.want == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 || !strings.Contains(keysOf(found), tt.want) || tt.want == "" {
				t.Errorf("got violations %v, want %q", found, tt.want)
			}
		})
	}
}

func keysOf(found map[string][]string) string {
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

func TestFollowEvents_CountsFinalEventsAndContinues(t *testing.T) {
	final := `event: final` + "\n" + `data: {"type":"final","request_id":"r","at":"2026-01-02T15:04:05Z","response":{"request_id":"r","status":"failed","decision":null,"tasks":[],"omitted":[],"data":{}}}` + "\n\n"
	var streams []string
	var after []string
	c := newTestCallers(t, func(w http.ResponseWriter, r *http.Request) {
		after = append(after, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streams[0])
		streams = streams[1:]
	})
	c.Ledger.recordAccepted("r")
	streams = []string{
		": comment\n\nid: 4\nevent: decision\ndata: {\"type\":\"decision\",\"request_id\":\"r\",\"at\":\"2026-01-02T15:04:05Z\"}\n\n",
		"event: state\ndata: {\"type\":\"state\",\"request_id\":\"r\",\"at\":\"2026-01-02T15:04:05Z\"}\n\nid: 9\n" + final,
		final + final,
	}
	for _, want := range []struct {
		last   uint64
		finals int
		status contract.Status
	}{{4, 0, ""}, {9, 1, contract.StatusFailed}, {9, 2, contract.StatusFailed}} {
		c.FollowEvents(t.Context(), "r")
		p := c.Ledger.requests["r"]
		if p.lastEvent != want.last || p.finalEvents != want.finals || p.finalStatus != want.status {
			t.Errorf("got sequence %d, %d finals of status %q, want %d, %d, %q", p.lastEvent, p.finalEvents, p.finalStatus, want.last, want.finals, want.status)
		}
	}
	if diff := cmp.Diff([]string{"", "4", "9"}, after); diff != "" {
		t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
	}
}

func TestNewOrder_SetsInputsOfAgents(t *testing.T) {
	o := NewOrder("prompt", "k", 7, true)
	var req struct {
		Content struct {
			Inputs map[string]json.RawMessage `json:"inputs"`
		} `json:"content"`
		Options contract.Options `json:"options"`
	}
	if err := strictjson.UnmarshalAllowUnknown(o.body, &req); err != nil {
		t.Fatal(err)
	}
	if got := unquoteJSON(req.Content.Inputs[inputKey]); got != "k" {
		t.Errorf("key: got %q, want k", got)
	}
	if _, hold := req.Content.Inputs[inputHold]; !hold || req.Options.TimeoutMS != 7 || req.Options.Mode != contract.ModeAsync {
		t.Errorf("got %s, want a held asynchronous request with 7 ms", o.body)
	}
}
