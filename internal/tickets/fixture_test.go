package tickets_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/internal/tickets"
)

// clock advances by one second per call.
type clock struct{ seconds atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(c.seconds.Add(1)) * time.Second)
}

// serviceFixture is a bucket with a ticket service.
type serviceFixture struct {
	*tickets.Service
	bucket *store.Bucket
	cfg    tickets.Config
}

func newBucket(t testing.TB) *store.Bucket {
	t.Helper()
	b, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "TICKETS"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newServiceFixture(t testing.TB, change ...func(*tickets.Config)) *serviceFixture {
	t.Helper()
	var ids atomic.Int64
	cfg := tickets.Config{
		Bucket: newBucket(t), Now: new(clock).now,
		NewID: func() string { return fmt.Sprintf("id-%03d", ids.Add(1)) },
	}
	for _, c := range change {
		c(&cfg)
	}
	o := &serviceFixture{bucket: cfg.Bucket, cfg: cfg}
	o.reopen(t)
	return o
}

// reopen opens the service again, as a new process does.
func (o *serviceFixture) reopen(t testing.TB) {
	t.Helper()
	d, err := tickets.Open(context.WithoutCancel(t.Context()), o.cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.Service = d
}

var registry = &capabilities.Catalogue{
	Agents: []*contract.RegistryEntry{{
		ID: "quality_agent", Match: contract.Match{Intent: []string{"code_review"}, Domains: []string{"python"}},
	}},
	Intents: []string{"code_review"}, Domains: []string{"python"},
	Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback(),
}

// newDemand returns a request of a caller, written "tenant/subject".
func newDemand(requestID, caller, prompt string) *tickets.Demand {
	c := &contract.Caller{AllAgents: true}
	for i, r := range caller {
		if r == '/' {
			c.Tenant, c.Subject = caller[:i], caller[i+1:]
		}
	}
	return &tickets.Demand{
		RequestID: requestID,
		Unmet: &fallback.Unmet{
			Catalogue: registry, Caller: c, Prompt: prompt, Reason: fallback.ReasonNoMatch,
			Decision: &contract.Decision{
				Classification: contract.Classification{Intent: contract.Unknown, Domains: []string{contract.Unknown}, Source: contract.SourceLexical},
				Candidates:     []contract.Candidate{{AgentID: "quality_agent", Score: 0.3, Gates: []contract.Gate{{Gate: "threshold", Reason: "too little"}}}},
			},
		},
	}
}

func (o *serviceFixture) propose(t testing.TB, d *tickets.Demand) *contract.Proposal {
	t.Helper()
	p, err := o.Propose(context.WithoutCancel(t.Context()), d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (o *serviceFixture) get(t testing.TB, id string) *contract.Ticket {
	t.Helper()
	ticket, err := o.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}
