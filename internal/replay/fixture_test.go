package replay_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/replay"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
)

func parseRegistry(t testing.TB, text string) *capabilities.Snapshot {
	t.Helper()
	s, err := capabilities.Parse("registry.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorder records decisions in a real store.
type recorder struct {
	t      *testing.T
	router *router.Router
	model  *contract.Classification // nil = the lexical classifier
	live   map[string]contract.AgentState
}

func newRecorder(t *testing.T, registry string) *recorder {
	t.Helper()
	dir, s := t.TempDir(), teststore.Open(t)
	stored, err := s.Log(t.Context(), audit.LogConfig(0))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keyring.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), audit.Config{
		Log: stored, Keys: teststore.Keys(), Signer: signer, HeadFile: filepath.Join(dir, audit.HeadFile),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close(context.WithoutCancel(t.Context())) })
	r := &recorder{t: t, live: map[string]contract.AgentState{}}
	sessions, err := s.Bucket(t.Context(), store.BucketConfig{Name: "SESSIONS", MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r.router, err = router.New(router.Config{Storage: router.Storage{AuditLog: log, Sessions: sessions}}, r, r)
	if err != nil {
		t.Fatal(err)
	}
	r.load(registry)
	return r
}

func (r *recorder) load(registry string) {
	r.router.SetView(router.NewView(parseRegistry(r.t, registry), r))
}

func (r *recorder) Classify(_ context.Context, in classifier.Input) contract.Classification {
	if r.model != nil {
		return *r.model
	}
	return classifier.ClassifyLexically(&in)
}

func (r *recorder) SetAgents(agents []*contract.RegistryEntry) matcher.Live {
	live := make(matcher.Live, len(agents))
	for i, a := range agents {
		live[i] = &matcher.LiveState{}
		live[i].SetState(r.live[a.ID])
	}
	return live
}

func (*recorder) Prepare(context.Context, dispatch.Call) dispatch.Token { return dispatch.Token{} }

func (*recorder) CancelTask(dispatch.Call) {}

func (*recorder) Send(context.Context, dispatch.Call) dispatch.Outcome {
	return dispatch.Outcome{Err: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "no agent runs"}}
}

// route records a decision.
func (r *recorder) route(prompt string, caller *contract.Caller, change ...func(*contract.Request)) *contract.Response {
	r.t.Helper()
	req := &contract.Request{Content: contract.Content{Prompt: prompt}}
	for _, f := range change {
		f(req)
	}
	resp, err := r.router.Handle(r.t.Context(), req, caller)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

func (r *recorder) replay(registry string, change ...func(*replay.Config)) *replay.Report {
	r.t.Helper()
	cfg := replay.Config{Candidate: parseRegistry(r.t, registry), Reader: newOperator()}
	for _, f := range change {
		f(&cfg)
	}
	report, err := replay.Run(r.t.Context(), cfg, func(ctx context.Context, q contract.DecisionQuery) (*contract.DecisionPage, error) {
		return r.router.History().Decisions(ctx, q, cfg.Reader)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

func newOperator() *contract.Caller {
	return &contract.Caller{Subject: "operator", AllScopes: true, AllAgents: true}
}

func newMember(tenant, subject string, scopes ...string) *contract.Caller {
	return &contract.Caller{Subject: subject, Tenant: tenant, Scopes: scopes, AllAgents: len(scopes) == 0}
}

// formatReport returns a line for each change: what, before, after.
func formatReport(r *replay.Report) string {
	show := func(o replay.Outcome) string {
		text := o.Outcome + " " + o.Intent + " " + strings.Join(o.Agents, "+")
		if o.Fallback != nil {
			text += *o.Fallback
		}
		return text
	}
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s: %s: %s -> %s\n", c.Prompt, strings.Join(c.What, " "), show(c.Before), show(c.After))
	}
	fmt.Fprintf(&b, "replayed %d, same %d, changed %d", r.Replayed, r.Same, r.Changed)
	for _, n := range r.NotReplayable {
		fmt.Fprintf(&b, ", %s %d", n.Reason, n.Count)
	}
	return b.String()
}

func checkReport(t *testing.T, what string, got *replay.Report, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), formatReport(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
