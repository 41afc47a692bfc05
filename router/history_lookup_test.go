package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/router"
)

// A caller that may see the request of another gets forbidden. A caller that may not see it
// gets not_found.
func TestHistory_OnlyOwnerCancelsAndErases(t *testing.T) {
	h := newHarness(t)
	colleague := &contract.Caller{Subject: "bob", Tenant: "north", AllAgents: true, Scopes: []string{"route:submit"}}
	for _, tt := range []struct {
		name   string
		caller *contract.Caller
		want   contract.Code
	}{
		{"colleague with access", colleague, contract.CodeForbidden},
		{"same subject, other issuer", &contract.Caller{Subject: "alice", Tenant: "north", Issuer: "https://other.example", AllAgents: true}, contract.CodeForbidden},
		{"administrator without route:submit", &contract.Caller{Subject: "root", Scopes: []string{"admin"}}, contract.CodeForbidden},
		{"colleague without access", caller("bob", "route:submit"), contract.CodeNotFound},
		{"another tenant", &contract.Caller{Subject: "alice", Tenant: "south", AllAgents: true}, contract.CodeNotFound},
		{"owner without scopes", caller("alice"), ""},
		{"administrator", &contract.Caller{Subject: "root", Scopes: []string{"admin", "route:submit"}}, ""},
		{"local principal", &contract.Caller{Subject: "local", AllScopes: true}, ""},
	} {
		h.target.setBehaviour("payer", h.target.hang)
		running := h.submit().RequestID
		testkit.Receive(t, h.target.begun)
		if _, err := h.Cancel(t.Context(), running, tt.caller); codeOf(err) != tt.want {
			t.Errorf("%s cancels: got %v, want %q", tt.name, err, tt.want)
		}
		h.target.setBehaviour("payer", nil)
		if tt.want != "" {
			if _, err := h.Cancel(t.Context(), running, alice); err != nil {
				t.Fatal(err)
			}
		}
		done, err := h.Handle(t.Context(), newRequest(), alice)
		h.must(err)
		if err := h.Erase(t.Context(), done.RequestID, tt.caller); codeOf(err) != tt.want {
			t.Errorf("%s erases: got %v, want %q", tt.name, err, tt.want)
		}
		if got, err := h.auditLog.Find(t.Context(), done.RequestID); err != nil || (got.Outcome.Content == nil) != (tt.want == "") {
			t.Errorf("%s: got content erased %t, %v, want %t", tt.name, got.Outcome.Content == nil, err, tt.want == "")
		}
	}
	done, err := h.Handle(t.Context(), newRequest(), alice)
	h.must(err)
	const want = "only the sender of the request, or an administrator, may erase it"
	if err := h.Erase(t.Context(), done.RequestID, colleague); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func newDispatcher(t *testing.T) *dispatch.Dispatcher {
	d, err := dispatch.New(dispatch.Config{}, map[string]dispatch.Target{contract.ProtocolHTTP: newAgents()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// codeOf returns the code of an error, or "" for nil.
func codeOf(err error) contract.Code {
	if err == nil {
		return ""
	}
	return code(err)
}

// Callers without a tenant share requests only with callers of the same issuer.
func TestHistory_SeparatesIssuersWithoutTenant(t *testing.T) {
	h := newHarness(t)
	of := func(subject, issuer string) *contract.Caller {
		return &contract.Caller{Subject: subject, Issuer: issuer, AllAgents: true}
	}
	done, err := h.Handle(t.Context(), newRequest(), of("ana", "https://one.example"))
	h.must(err)
	async, err := h.Submit(t.Context(), newRequest(asynchronous), of("ana", "https://one.example"))
	h.must(err)
	for _, tt := range []struct {
		caller *contract.Caller
		want   contract.Code
		listed int
	}{
		{of("ana", "https://one.example"), "", 2},
		{of("bob", "https://one.example"), "", 2},
		{of("bob", "https://two.example"), contract.CodeNotFound, 0},
		{of("ana", "https://two.example"), contract.CodeNotFound, 0},
		{of("ana", ""), contract.CodeNotFound, 0},
	} {
		for _, id := range []string{done.RequestID, async.RequestID} {
			if _, err := h.Request(t.Context(), id, tt.caller); codeOf(err) != tt.want {
				t.Errorf("%s of %q: got %v, want %q", tt.caller.Subject, tt.caller.Issuer, err, tt.want)
			}
		}
		h.eventually(func() bool {
			page, err := h.Decisions(t.Context(), contract.DecisionQuery{}, tt.caller)
			h.must(err)
			return len(page.Decisions) == tt.listed
		})
	}
}

// partitions records the cache partitions of the classifier's inputs.
type partitions struct {
	*scriptedClassifier
	partitions []string
}

func (p *partitions) Classify(ctx context.Context, in classifier.Input) contract.Classification {
	p.partitions = append(p.partitions, in.Partition)
	return p.scriptedClassifier.Classify(ctx, in)
}

// Replies of a model are shared within a tenant or, without a tenant, within an issuer.
func TestRouter_PartitionsModelCacheByTenant(t *testing.T) {
	recorder := &partitions{scriptedClassifier: &scriptedClassifier{}}
	h := newHarness(t)
	r, err := router.New(router.Config{}, recorder, newDispatcher(t))
	h.must(err)
	r.SetView(h.View())
	for _, c := range []*contract.Caller{
		{Tenant: "north", Issuer: "one"},
		{Tenant: "north", Issuer: "two"},
		{Tenant: "south"},
		{Issuer: "north"},
		{Issuer: "one"},
		{},
	} {
		if _, err := r.Classify(t.Context(), newRequest(), c); err != nil {
			t.Fatal(err)
		}
	}
	if recorder.partitions[0] != recorder.partitions[1] {
		t.Errorf("got partitions %q for one tenant, want equal ones", recorder.partitions[:2])
	}
	if other := slices.Compact(slices.Sorted(slices.Values(recorder.partitions))); len(other) != 5 {
		t.Errorf("got partitions %q, want five different ones", other)
	}
}

// idOf returns a request id created at this time.
func idOf(at time.Time) string {
	id := []byte(router.NewID())
	const digits = "0123456789abcdef"
	ms := uint64(at.UnixMilli())
	for _, i := range []int{12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1, 0} {
		id[i] = digits[ms&15]
		ms >>= 4
	}
	return string(id)
}

// The outcome is recorded later than the longest synchronous request takes, and the stored request
// has expired.
func TestHistory_FindsOutcomeOfLongRequest(t *testing.T) {
	h := newHarness(t)
	created := time.Now().Add(-5 * time.Hour)
	id := idOf(created)
	for _, rec := range []audit.Record{
		{Kind: audit.KindDecision, At: created, RequestID: id, Tenant: alice.Tenant, Subject: alice.Subject, Status: contract.StatusRunning, Agents: []string{"payer"}},
		{Kind: audit.KindDecision, At: created.Add(2 * time.Hour), RequestID: idOf(created.Add(2 * time.Hour)), Agents: []string{"payer"}},
		{Kind: audit.KindOutcome, At: created.Add(3 * time.Hour), RequestID: id, Tenant: alice.Tenant, Subject: alice.Subject, Status: contract.StatusCompleted, Agents: []string{"payer"}},
	} {
		h.must(h.auditLog.Append(t.Context(), rec))
	}
	for _, when := range []string{"now", "after a restart"} {
		got, err := h.Request(t.Context(), id, alice)
		if err != nil || got.Status != contract.StatusCompleted {
			t.Errorf("%s: got %+v, %v, want its status", when, got, err)
		}
		h.restart()
	}
	if _, err := h.Request(t.Context(), idOf(created), alice); code(err) != contract.CodeNotFound || errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want not_found", err)
	}
}

// A reply of an agent nests at most as deep as strictjson.MaxDepth, and the stored response
// around it deeper.
func TestRouter_ReadsStoredResponseWithDeepResult(t *testing.T) {
	const levels = strictjson.MaxDepth - 2 // the reply is an object, and so is its data
	deep := json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	h := newHarness(t)
	h.target.setBehaviour("payer", func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		res := success("paid")
		res.Data["deep"] = deep
		return dispatch.Outcome{Result: res, Attempts: 1, Health: dispatch.HealthGood}
	})
	direct, err := h.Handle(t.Context(), newRequest(), alice)
	if err != nil {
		t.Fatal(err)
	}
	later := h.final(h.submit().RequestID)
	for _, want := range []*contract.Response{direct, later} {
		got, err := h.Request(t.Context(), want.RequestID, alice)
		if err != nil {
			t.Errorf("got error %v, want the response", err)
			continue
		}
		if diff := cmp.Diff(want.Data, got.Data); diff != "" {
			t.Errorf("answer and later lookup differ (-answer +lookup):\n%s", diff)
		}
	}
}
