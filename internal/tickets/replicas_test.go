package tickets_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/internal/tickets"
)

// liveOwners are the processes that have not ended.
type liveOwners struct {
	mu    sync.Mutex
	ended map[string]bool
}

func (l *liveOwners) isLive(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return owner != "" && !l.ended[owner]
}

func (l *liveOwners) end(owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[owner] = true
}

// newReplicas opens services in one bucket of a server, like several processes.
func newReplicas(t *testing.T, count int, change ...func(*tickets.Config)) ([]*serviceFixture, *liveOwners) {
	t.Helper()
	srv := teststore.Serve(t, t.TempDir(), -1)
	live := &liveOwners{ended: map[string]bool{}}
	services := make([]*serviceFixture, count)
	for i := range services {
		owner := fmt.Sprintf("owner-%d", i)
		s := teststore.OpenShared(t, srv, owner)
		b, err := s.Bucket(t.Context(), store.BucketConfig{Name: "TICKETS", Keys: teststore.Keys()})
		if err != nil {
			t.Fatal(err)
		}
		services[i] = newServiceFixture(t, append(change, func(c *tickets.Config) {
			var ids atomic.Int64
			c.Bucket, c.Now = b, time.Now
			c.NewID = func() string { return fmt.Sprintf("id-%d-%03d", i, ids.Add(1)) }
			c.Replicas = &tickets.Replicas{Owner: owner, IsLive: live.isLive, Messages: s}
		})...)
	}
	return services, live
}

func runService(t *testing.T, s *serviceFixture) (stop func()) {
	t.Helper()
	g := run.New(context.WithoutCancel(t.Context()))
	g.Go("tickets", s.Run)
	stop = sync.OnceFunc(func() {
		g.Stop(nil)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// listed returns "title count" of all open tickets.
func listed(t *testing.T, s *serviceFixture) map[string]int {
	t.Helper()
	page, err := s.List(t.Context(), tickets.ListQuery{AllTenants: true})
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]int{}
	for _, ticket := range page.Tickets {
		key := ticket.Tenant + ": " + ticket.Title
		if _, twice := list[key]; twice {
			t.Errorf("got two tickets %q", key)
		}
		list[key] = ticket.Count
	}
	return list
}

// Similar concurrent requests at several replicas share one ticket, and each is counted once.
func TestReplicas_OpenOneTicket(t *testing.T) {
	services, _ := newReplicas(t, 2)
	const requests = 12
	prompts := []string{"book a flight to Lisbon", "translate this contract to Finnish", "water the plants in the office"}
	errs := make([]error, len(prompts)*requests)
	want := map[string]int{}
	for _, prompt := range prompts {
		want["acme: "+prompt] = requests
	}
	run.ForEach(t.Context(), 8, len(errs), func(ctx context.Context, i int) {
		prompt := prompts[i/requests]
		_, errs[i] = services[i%2].Propose(ctx, newDemand(fmt.Sprintf("r%d", i), "acme/ana", prompt))
	})
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	for i, s := range services {
		s.reopen(t)
		if diff := cmp.Diff(want, listed(t, s)); diff != "" {
			t.Errorf("replica %d: tickets (-want +got):\n%s", i, diff)
		}
	}
}

func TestReplicas_FollowChanges(t *testing.T) {
	ledger := quota.New(quota.Config{Part: "tickets", Limit: 1 << 20, Removable: true, Held: true})
	services, _ := newReplicas(t, 2)
	a, b := services[0], services[1]
	b.cfg.Quota = ledger
	b.reopen(t)
	runService(t, a)
	runService(t, b)
	// The subscription is asynchronous, so the first changes may be missed.
	i := 0
	testkit.Eventually(t, "a ticket of the other replica is listed", func() bool {
		i++
		a.propose(t, newDemand(fmt.Sprint("r", i), fmt.Sprintf("tenant%d/ana", i), "book a flight to Lisbon"))
		return len(listed(t, b)) > 0
	})
	p := a.propose(t, newDemand("r", "acme/ana", "book a flight to Lisbon"))
	testkit.Eventually(t, "the ticket is listed", func() bool { return listed(t, b)["acme: book a flight to Lisbon"] == 1 })
	acme := quota.Owner{Tenant: "acme"}
	testkit.Eventually(t, "the bytes of the other replica's ticket are counted", func() bool { return ledger.Usage()[acme] > 0 })
	if joined := b.propose(t, newDemand("r2", "acme/bob", "book a flight to Porto")); joined.TicketID != p.TicketID {
		t.Errorf("got ticket %s, want that of the other replica, %s", joined.TicketID, p.TicketID)
	}
	if _, err := a.Close(t.Context(), p.TicketID, "done"); err != nil {
		t.Fatal(err)
	}
	if next := b.propose(t, newDemand("r3", "acme/bob", "book a flight to Porto")); next.TicketID == p.TicketID {
		t.Error("got a request joined to a ticket that another replica has closed")
	}
	if err := a.EraseRequest(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
}

func TestReplicas_DeliverEachNoticeOnce(t *testing.T) {
	in := newWebhookServer(t, 200)
	hook := &tickets.Webhook{URL: in.URL, Secret: llm.NewSecret(secret)}
	services, live := newReplicas(t, 2, func(c *tickets.Config) { c.Webhook = hook })
	a, b := services[0], services[1]
	delivered := func(id string) {
		t.Helper()
		testkit.Eventually(t, "the notices are removed", func() bool {
			pending, err := tickets.Pending(t.Context(), b.bucket, id)
			return err == nil && len(pending) == 0
		})
	}
	p := a.propose(t, newDemand("r1", "acme/ana", "book a flight to Lisbon"))
	b.reopen(t) // reads the pending notice
	stopB := runService(t, b)
	if _, err := b.Close(t.Context(), p.TicketID, "done"); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Receive(t, in.messages); got.Type != "ticket.closed" {
		t.Errorf("got %s, want the notice of the running replica", got.Type)
	}
	// The notice of a is sent by a, or after its end.
	stop := runService(t, a)
	if got := testkit.Receive(t, in.messages); got.Type != "ticket.opened" {
		t.Errorf("got %s, want the notice of the replica that was not running", got.Type)
	}
	delivered(p.TicketID)
	stop()
	p = a.propose(t, newDemand("r2", "acme/ana", "water the plants in the office"))
	live.end("owner-0")
	stopB()
	b.reopen(t)
	runService(t, b)
	if got := testkit.Receive(t, in.messages); got.Type != "ticket.opened" || got.Title != "water the plants in the office" {
		t.Errorf("got %s of %s, want the notice of the replica that has ended", got.Type, got.Title)
	}
	delivered(p.TicketID)
	select {
	case m := <-in.messages:
		t.Errorf("got another message %s of %s", m.Type, m.Title)
	default:
	}
}
