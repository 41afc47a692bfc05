package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// testFleet is a Fleet with a real store, and a clock that is set by the test.
type testFleet struct {
	*Fleet
	t      *testing.T
	bucket *store.Bucket

	mu       sync.Mutex
	now      time.Time
	operator *capabilities.Definition
}

func newTestFleet(t *testing.T) *testFleet {
	t.Helper()
	s := teststore.Open(t)
	b, err := s.Bucket(t.Context(), store.BucketConfig{Name: "AGENTS"})
	if err != nil {
		t.Fatal(err)
	}
	f := &testFleet{t: t, bucket: b, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	f.setOperator(`
clients: {fixed: {match: {intent: [x], domains: [d]}}}
grants: {w: {intents: [count_words], domains: [text]}, v: {intents: [x]}}
`)
	f.reopen()
	return f
}

// reopen replaces the Fleet by another one with the same store, as after a restart.
func (f *testFleet) reopen() {
	f.t.Helper()
	var err error
	f.Fleet, err = Open(f.t.Context(), Config{Bucket: f.bucket, Operator: f.getOperator, CheckAddress: blockAddress, Now: f.getNow})
	if err != nil {
		f.t.Fatal(err)
	}
}

const blockedURL = "http://169.254.169.254/"

func blockAddress(url string) error {
	if url == blockedURL {
		return errors.New(url + " may not be called")
	}
	return nil
}

func (f *testFleet) setOperator(file string) {
	f.t.Helper()
	d, err := capabilities.ParseDefinition("f.yaml", []byte(file))
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operator = d
}

func (f *testFleet) getOperator() *capabilities.Definition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.operator
}

func (f *testFleet) getNow() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// advance moves the clock, and ends the leases like Run.
func (f *testFleet) advance(d time.Duration) {
	f.mu.Lock()
	f.now = f.now.Add(d)
	f.mu.Unlock()
	f.endLeases(f.t.Context())
}

// agents returns "id state instance:state …" of each agent, sorted, with the disabled ones at the
// end.
func (f *testFleet) agents() []string {
	f.t.Helper()
	d, err := f.State()
	if err != nil {
		f.t.Fatal(err)
	}
	var list []string
	for _, a := range d.Agents {
		var line strings.Builder
		line.WriteString(a.ID + " " + string(a.State))
		for _, i := range a.Instances {
			fmt.Fprintf(&line, " %s:%s", i.Name, i.State)
		}
		list = append(list, line.String())
	}
	slices.Sort(list)
	for id := range d.Disabled {
		list = append(list, "disabled: "+id)
	}
	return list
}

func (f *testFleet) checkAgents(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.agents()); diff != "" {
		f.t.Errorf("agents (-want +got):\n%s", diff)
	}
}

// callerOf returns the agent with the token that the operator has issued for it.
func callerOf(id string) *contract.Caller { return &contract.Caller{Subject: id, Issuer: "router"} }

func wordCounter(instance string) contract.Registration {
	return contract.Registration{
		Instance: instance, Match: contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
		Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:9101/"},
	}
}

func (f *testFleet) register(id string, r contract.Registration) Registered {
	f.t.Helper()
	got, err := f.Register(f.t.Context(), id, r, callerOf(id), "")
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

// checkCode checks that the error has this code, and a message that contains the text.
func checkCode(t *testing.T, err error, code contract.Code, text string) {
	t.Helper()
	e, ok := errors.AsType[*contract.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("got error %v, want %s with %q", err, code, text)
	}
}

func TestRegister_GrantsLease(t *testing.T) {
	f := newTestFleet(t)
	r := wordCounter("")
	r.Match.Intent = append(r.Match.Intent, "pay")
	r.LeaseTTLS = 6
	got := f.register("w", r)
	want := contract.Lease{
		AgentID: "w", Instance: "default", State: contract.AgentActive, Reasons: []string{}, ExpiresAt: f.now.Add(6 * time.Second), HeartbeatS: 2,
		Granted: contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}}, Refused: []string{"intent pay is not granted"},
	}
	if diff := cmp.Diff(want, got.Lease); diff != "" || !got.Created {
		t.Errorf("created %v, lease (-want +got):\n%s", got.Created, diff)
	}
	f.checkAgents("w active default:active")
	f.advance(5 * time.Second)
	if again := f.register("w", r); again.Created || again.ETag != got.ETag || !again.Lease.ExpiresAt.Equal(f.now.Add(6*time.Second)) {
		t.Errorf("same registration again: got %+v, want a renewed lease and the ETag %s", again, got.ETag)
	}
	r.Description = "another"
	if changed := f.register("w", r); changed.Created || changed.ETag == got.ETag {
		t.Errorf("changed registration: got %+v, want another ETag", changed)
	}
}

func TestRegister_ChecksCaller(t *testing.T) {
	f := newTestFleet(t)
	f.register("w", wordCounter("one"))
	admin := &contract.Caller{Subject: "ops", Scopes: []string{contract.ScopeAdmin}}
	for name, tc := range map[string]struct {
		id     string
		caller *contract.Caller
		code   contract.Code // "" = accepted
		text   string
	}{
		"the agent itself":  {"w", callerOf("w"), "", ""},
		"another agent":     {"w", callerOf("v"), contract.CodeForbidden, "the token is for v and not for the agent w"},
		"another issuer":    {"w", &contract.Caller{Subject: "w", Issuer: "elsewhere"}, contract.CodeForbidden, "another issuer"},
		"operator":          {"w", admin, "", ""},
		"no grant":          {"u", callerOf("u"), contract.CodeForbidden, "grants nothing to u: add it there, for example grants: {u: {"},
		"agent of the file": {"fixed", callerOf("fixed"), contract.CodeConflict, "fixed is declared in the operator's registry file, which has precedence, so that it needs no registration: "},
		"blocked address":   {"w", callerOf("w"), contract.CodeInvalidRequest, "the registration is not valid"},
		"local principal":   {"v", &contract.Caller{Subject: "local", AllScopes: true}, "", ""},
	} {
		r := wordCounter("one")
		if tc.code == contract.CodeInvalidRequest {
			r.Endpoint.URL = blockedURL
		}
		_, err := f.Register(t.Context(), tc.id, r, tc.caller, "")
		if tc.code == "" && err == nil {
			continue
		}
		t.Run(name, func(t *testing.T) { checkCode(t, err, tc.code, tc.text) })
	}
	for i := len(f.Leases("v")); i < maxInstances; i++ {
		f.register("v", wordCounter(fmt.Sprintf("i%d", i)))
	}
	_, err := f.Register(t.Context(), "v", wordCounter("more"), callerOf("v"), "")
	checkCode(t, err, contract.CodeConflict, "has 100 instances")
}

func TestRegister_ReportsMissingGrant(t *testing.T) {
	f := newTestFleet(t)
	r := wordCounter("")
	r.Match.Intent = []string{"pay"}
	lease := f.register("w", r).Lease
	if diff := cmp.Diff([]string{contract.ReasonNothingGranted}, lease.Reasons); diff != "" || lease.State != contract.AgentActive {
		t.Errorf("state %s, reasons (-want +got):\n%s", lease.State, diff)
	}
	f.setOperator("clients: {}\ngrants: {w: {intents: [pay], domains: [text]}}")
	lease, err := f.Heartbeat(t.Context(), "w", "", callerOf("w"))
	if err != nil || len(lease.Reasons) > 0 {
		t.Errorf("after the grant: got %v, %v, want no reasons", lease.Reasons, err)
	}
}

func TestRegister_ComparesETag(t *testing.T) {
	f := newTestFleet(t)
	put := func(description, ifMatch string) (Registered, error) {
		r := wordCounter("")
		r.Description = description
		return f.Register(t.Context(), "w", r, callerOf("w"), ifMatch)
	}
	for _, absent := range []string{"*", `"1"`} {
		_, err := put("a", absent)
		checkCode(t, err, contract.CodePreconditionFailed, "If-Match")
	}
	first, err := put("a", "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := put("b", first.ETag)
	if err != nil || second.ETag == first.ETag {
		t.Fatalf("got %+v, %v, want another ETag than %s", second, err, first.ETag)
	}
	for _, other := range []string{first.ETag, first.ETag + `, "x"`, "W/" + second.ETag} {
		_, err = put("c", other)
		checkCode(t, err, contract.CodePreconditionFailed, "If-Match")
	}
	if _, err := put("c", first.ETag+`, "x,y" ,`+second.ETag); err != nil {
		t.Errorf("ETag in a list: %v", err)
	}
	if _, err := put("d", "*"); err != nil {
		t.Errorf("If-Match *: %v", err)
	}
}

func TestFleet_LeaseEndsWithoutHeartbeat(t *testing.T) {
	f := newTestFleet(t)
	f.register("w", wordCounter("one"))
	f.register("w", wordCounter("two"))
	f.advance(29 * time.Second)
	if _, err := f.Heartbeat(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	f.advance(time.Second)
	f.checkAgents("w active one:active two:expired")
	f.advance(29 * time.Second)
	f.checkAgents("w expired one:expired two:expired")
	lease, err := f.Heartbeat(t.Context(), "w", "two", callerOf("w"))
	if err != nil || lease.State != contract.AgentActive {
		t.Errorf("late heartbeat: got %+v, %v, want an active lease", lease, err)
	}
	f.checkAgents("w active one:expired two:active")
	f.advance(keepExpired)
	f.checkAgents("w expired two:expired")
	_, err = f.Heartbeat(t.Context(), "w", "one", callerOf("w"))
	checkCode(t, err, contract.CodeNotFound, "instance one of agent w is not registered")
	f.advance(keepExpired)
	f.checkAgents()
	if keys, err := f.registrations.Keys(t.Context()); err != nil || len(keys) != 0 {
		t.Errorf("stored registrations: %q, %v, want none", keys, err)
	}
}

// A process that was suspended does not delete agents whose heartbeats it has not received yet.
func TestFleet_KeepsAgentsAfterSuspension(t *testing.T) {
	f := newTestFleet(t)
	f.register("w", wordCounter("one"))
	f.advance(keepExpired + time.Hour)
	f.checkAgents("w expired one:expired")
	if _, err := f.Heartbeat(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Errorf("heartbeat after the suspension: %v", err)
	}
	f.checkAgents("w active one:active")
}

func TestHeartbeat_EndsWithGrantOrEntryOfFile(t *testing.T) {
	f := newTestFleet(t)
	f.register("w", wordCounter(""))
	f.setOperator("clients: {w: {match: {intent: [count_words]}}}\n")
	_, err := f.Heartbeat(t.Context(), "w", "", callerOf("w"))
	checkCode(t, err, contract.CodeConflict, "w is declared in the operator's registry file")
	f.setOperator("clients: {}\n")
	_, err = f.Heartbeat(t.Context(), "w", "", callerOf("w"))
	checkCode(t, err, contract.CodeForbidden, "grants nothing to w")
	if err := f.Deregister(t.Context(), "w", "", callerOf("w")); err != nil {
		t.Errorf("deregister without a grant: got %v, want no error", err)
	}
}

func TestFleet_DrainAndLeave(t *testing.T) {
	f := newTestFleet(t)
	for _, name := range []string{"one", "two", "three"} {
		f.register("w", wordCounter(name))
	}
	lease, err := f.Drain(t.Context(), "w", "one", callerOf("w"))
	if err != nil || lease.State != contract.AgentDraining {
		t.Fatalf("got %+v, %v, want a draining lease", lease, err)
	}
	f.checkAgents("w active one:draining three:active two:active")
	if _, err := f.Heartbeat(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Errorf("heartbeat while draining: %v", err)
	}
	f.reopen()
	f.checkAgents("w active one:draining three:active two:active")
	if err := f.Deregister(t.Context(), "w", "one", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	f.checkAgents("w active three:active two:active")
	checkCode(t, f.Deregister(t.Context(), "w", "one", callerOf("w")), contract.CodeNotFound, "instance one of agent w")
	checkCode(t, f.Deregister(t.Context(), "w", "two", callerOf("v")), contract.CodeForbidden, "the token is for v")
	checkCode(t, f.Deregister(t.Context(), "nobody", "", callerOf("v")), contract.CodeForbidden, "the token is for v")
	_, err = f.Drain(t.Context(), "w", "one", callerOf("w"))
	checkCode(t, err, contract.CodeNotFound, "instance one of agent w")
	if err := f.Deregister(t.Context(), "w", "", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	f.checkAgents()
	f.register("w", wordCounter("one"))
	f.checkAgents("w active one:active")
}

func TestSetDisabled_SurvivesRestart(t *testing.T) {
	f := newTestFleet(t)
	f.register("w", wordCounter(""))
	admin := &contract.Caller{Subject: "ops", Scopes: []string{contract.ScopeAdmin}}
	set := func(id string, disabled bool) {
		t.Helper()
		for range 2 { // the second call changes nothing
			if err := f.SetDisabled(t.Context(), id, disabled, admin); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("fixed", true)
	f.checkAgents("w active default:active", "disabled: fixed")
	f.reopen()
	f.checkAgents("w active default:active", "disabled: fixed")
	set("fixed", false)
	set("w", true)
	if err := f.Deregister(t.Context(), "w", "", callerOf("w")); err != nil {
		t.Fatal(err)
	}
	f.register("w", wordCounter("")) // does not enable it
	f.checkAgents("w active default:active", "disabled: w")
	checkCode(t, f.SetDisabled(t.Context(), "nobody", true, admin), contract.CodeNotFound, "no such agent")
}

// Run notifies the registry of a registration, and of the end of its lease.
func TestRun_NotifiesRegistry(t *testing.T) {
	f := newTestFleet(t)
	f.cfg.Now = time.Now // the lease ends in real time
	states := make(chan string, 100)
	f.Notify(func() { states <- strings.Join(f.agents(), ", ") })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	r := wordCounter("")
	r.LeaseTTLS = contract.MinLeaseTTLS
	f.register("w", r)
	for _, want := range []string{"w active default:active", "w expired default:expired"} {
		for got := ""; got != want; { // the first notification may be about the empty fleet
			if got = testkit.Receive(t, states); got != want && got != "" {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	stop()
	if err := testkit.Receive(t, ended); err != nil {
		t.Error(err)
	}
}
