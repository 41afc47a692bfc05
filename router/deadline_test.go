package router_test

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/router"
)

// stuckAuditLog is an audit log whose disk blocks after the decision. It records the deadline of
// the write of the response.
type stuckAuditLog struct {
	router.AuditLog
	deadline, until time.Time
}

func (*stuckAuditLog) Admit(*contract.Caller) error { return nil }

func (s *stuckAuditLog) Append(ctx context.Context, rec audit.Record) error {
	if rec.Kind == audit.KindDecision {
		s.deadline, _ = ctx.Deadline()
		return nil
	}
	s.until, _ = ctx.Deadline()
	<-ctx.Done()
	return ctx.Err()
}

func (s *stuckAuditLog) Submit(ctx context.Context, rec audit.Record, done func(error)) error {
	done(s.Append(ctx, rec))
	return nil
}

func (*stuckAuditLog) Find(context.Context, string) (audit.RequestRecords, error) {
	return audit.RequestRecords{}, store.ErrUnavailable
}

// A synchronous caller gets the response at most 250 ms after the deadline, even if the write to
// the audit log takes longer.
func TestRouter_AnswersSoonAfterDeadlineIfDiskHangs(t *testing.T) {
	trail := &stuckAuditLog{}
	agents := &scriptedAgents{t: t}
	said := &scriptedClassifier{contract.Classification{Intent: "pay", Domains: []string{"bills"}, Confidence: 1, Source: contract.SourceLLM}}
	r, err := router.New(router.Config{Storage: router.Storage{AuditLog: trail}}, said, agents)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.WithoutCancel(t.Context())) })
	snapshot, err := capabilities.Parse("registry.yaml", []byte(durableRegistry))
	if err != nil {
		t.Fatal(err)
	}
	r.SetView(router.NewView(snapshot, agents))
	resp, err := r.Handle(t.Context(), newRequest(func(req *contract.Request) { req.Options.TimeoutMS = 50 }), alice)
	if err != nil || resp.Status != contract.StatusCompleted {
		t.Fatalf("got %+v, %v, want a response", resp, err)
	}
	if beyond := trail.until.Sub(trail.deadline); trail.deadline.IsZero() || trail.until.IsZero() || beyond > 250*time.Millisecond {
		t.Errorf("got a write deadline %s after the request's deadline, want at most 250 ms", beyond)
	}
}
