package router_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
	"github.com/caprouter/caprouter/internal/tickets"
	"github.com/caprouter/caprouter/router"
)

// durableRegistry has an idempotent agent, a non-idempotent agent and a standby for the latter.
const durableRegistry = `clients:
  counter: {match: {intent: [count], domains: [words]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/", idempotent: true}}
  payer:   {match: {intent: [pay], domains: [bills]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}, priority: 1}
  second:  {match: {intent: [pay], domains: [bills]}, endpoint: {protocol: http, url: "http://127.0.0.1:1/"}}
fallback: {policy: C}
`

// harness is a router with a real store. It can be restarted.
type harness struct {
	t     testing.TB
	store *store.Store
	dir   string

	auditLog *audit.Log
	requests *requests.Store
	events   *events.Stream
	tickets  *tickets.Service
	stop     context.CancelFunc // stops the background goroutines

	url     string // of a shared store; "" = embedded
	name    string // of this replica
	members *sharedMembers

	full    atomic.Bool // the disk
	revoked atomic.Bool // the key of all callers
	onFind  func()      // called once before the audit log is searched
	// beforeDecision is called before a decision is written to the audit log.
	beforeDecision func()
	// onDecision is called after a decision was written to the audit log.
	onDecision func(requestID string)
	// onOutcome is called before a response is written to the audit log.
	onOutcome func()
	// onStore is called after a request was written, with its key in the store, and before
	// that is confirmed.
	onStore   atomic.Pointer[func(key string)]
	registry  string // of the next start
	retention audit.Retention
	// answerFirst is set if callers do not wait until the response is recorded.
	answerFirst bool
	model       modeltext.Model
	answers     fallbackpolicy.AnswerLimit
	log         testkit.LogBuffer // of the router

	target     *agents
	classifier *scriptedClassifier
	*router.Router
	*history.Service // of stored requests
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{t: t, dir: t.TempDir(), registry: durableRegistry, target: newAgents()}
	h.classifier = &scriptedClassifier{contract.Classification{Intent: "pay", Domains: []string{"bills"}, Confidence: 1, Source: contract.SourceLLM}}
	h.open()
	t.Cleanup(func() { h.crash() })
	return h
}

// newReplica returns a router with a shared store.
func newReplica(t testing.TB, url, name string, members *sharedMembers) *harness {
	t.Helper()
	h := &harness{t: t, dir: t.TempDir(), url: url, name: name, members: members, registry: durableRegistry, target: newAgents()}
	h.classifier = &scriptedClassifier{contract.Classification{Intent: "pay", Domains: []string{"bills"}, Confidence: 1, Source: contract.SourceLLM}}
	h.open()
	t.Cleanup(func() { h.crash() })
	return h
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) bucket(name string) *store.Bucket {
	b, err := h.store.Bucket(context.Background(), store.BucketConfig{Name: name, MaxAge: time.Hour})
	h.must(err)
	return b
}

// open starts the process, but does not call Resume.
func (h *harness) open() {
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	var err error
	h.store, err = store.Open(ctx, store.Config{
		Dir: h.dir, URL: h.url, Owner: "test", SyncEvery: time.Minute, // no test simulates a power failure
		FreeSpace: func() (store.Space, error) {
			if h.full.Load() {
				return store.Space{}, nil
			}
			return store.Space{Bytes: 1 << 40, Files: -1}, nil
		},
	})
	h.must(err)
	log, err := h.store.Log(ctx, audit.LogConfig(0))
	h.must(err)
	signer, err := keyring.Open(h.dir)
	h.must(err)
	auditConfig := audit.Config{Log: log, Writer: h.name, Keys: teststore.Keys(), Signer: signer, HeadFile: filepath.Join(h.dir, audit.HeadFile), Retention: h.retention}
	if h.members != nil {
		auditConfig.Members = h.members.verify
		auditConfig.Heads, err = h.store.Bucket(ctx, audit.HeadsConfig())
		h.must(err)
	}
	h.auditLog, err = audit.Open(ctx, auditConfig)
	h.must(err)
	bucket, err := h.store.Bucket(ctx, store.BucketConfig{Name: "REQUESTS", MaxAge: time.Hour, OnWrite: func(key string, _ int) {
		if hook := h.onStore.Load(); hook != nil {
			(*hook)(key)
		}
	}})
	h.must(err)
	h.requests = requests.NewStore(bucket, quota.Unlimited())
	h.events, err = events.Open(ctx, h.store, events.Config{HasEnded: h.requests.HasEnded, Logger: slog.New(slog.DiscardHandler)})
	h.must(err)
	var background sync.WaitGroup
	background.Go(func() { _ = h.events.Run(ctx) })
	h.tickets, err = tickets.Open(ctx, tickets.Config{Bucket: h.bucket("TICKETS"), NewID: router.NewID, Catalogue: func() *capabilities.Catalogue { return h.View().Catalogue }})
	h.must(err)
	d, err := dispatch.New(dispatch.Config{}, map[string]dispatch.Target{contract.ProtocolHTTP: h.target})
	h.must(err)
	storage := router.Storage{
		AuditLog: &watchedAuditLog{Log: h.auditLog, harness: h}, Requests: h.requests, Events: h.events, Sessions: h.bucket("SESSIONS"),
		IdempotencyKeys: h.bucket("IDEMPOTENCY"), Tickets: h.tickets, Owner: router.NewID(), AnswerFirst: h.answerFirst,
	}
	if h.members != nil {
		storage.IsLive, storage.Messages = h.members.isLive, h.store
	}
	h.Router, err = router.New(router.Config{
		Model: h.model, Answers: h.answers, Storage: storage, IsRevoked: func(*contract.Caller) bool { return h.revoked.Load() }, Logger: h.log.Logger(),
	}, h.classifier, d)
	h.must(err)
	background.Go(func() { _ = h.FollowPeers(ctx) })
	snapshot, err := capabilities.Parse("registry.yaml", []byte(h.registry))
	h.must(err)
	h.SetView(router.NewView(snapshot, d))
	h.Service = h.History()
	h.stop = func() { stop(); background.Wait() }
}

// watchedAuditLog calls the hooks of the harness.
type watchedAuditLog struct {
	*audit.Log
	harness *harness
}

func (w *watchedAuditLog) Find(ctx context.Context, id string) (audit.RequestRecords, error) {
	if hook := w.harness.onFind; hook != nil {
		w.harness.onFind = nil
		hook()
	}
	return w.Log.Find(ctx, id)
}

func (w *watchedAuditLog) FindWithin(ctx context.Context, id string, life time.Duration) (audit.RequestRecords, error) {
	if hook := w.harness.onFind; hook != nil {
		w.harness.onFind = nil
		hook()
	}
	return w.Log.FindWithin(ctx, id, life)
}

func (w *watchedAuditLog) Append(ctx context.Context, rec audit.Record) error {
	if hook := w.harness.onOutcome; hook != nil && rec.Kind == audit.KindOutcome {
		hook()
	}
	return w.Log.Append(ctx, rec)
}

func (w *watchedAuditLog) Submit(ctx context.Context, rec audit.Record, done func(error)) error {
	before, after := w.harness.onOutcome, w.harness.onDecision
	if rec.Kind == audit.KindDecision {
		before = w.harness.beforeDecision
	} else {
		after = nil
	}
	if before == nil && after == nil {
		return w.Log.Submit(ctx, rec, done)
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		if before != nil {
			before()
		}
		err := w.Log.Append(ctx, rec)
		if after != nil && err == nil {
			after(rec.RequestID)
		}
		done(err)
	}()
	return nil
}

// crash stops the process without a shutdown: nothing more is written.
func (h *harness) crash() {
	h.must(h.store.Close())
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	h.Close(ended)
	h.stop()
	_ = h.auditLog.Close(ended) // fails, because the store is closed
}

// restart stops the process without a shutdown and starts the next one.
func (h *harness) restart() {
	h.t.Helper()
	h.crash()
	h.open()
	h.must(h.Resume(context.Background()))
}

var alice = &contract.Caller{Subject: "alice", Tenant: "north", AllAgents: true}

func newRequest(change ...func(*contract.Request)) *contract.Request {
	req := &contract.Request{Content: contract.Content{Prompt: "pay my bills"}}
	for _, c := range change {
		c(req)
	}
	return req
}

func asynchronous(req *contract.Request) { req.Options.Mode = contract.ModeAsync }

func (h *harness) submit(change ...func(*contract.Request)) *contract.Response {
	h.t.Helper()
	resp, err := h.Submit(context.Background(), newRequest(append(change, asynchronous)...), alice)
	h.must(err)
	return resp
}

// final polls an asynchronous request until it has ended.
func (h *harness) final(id string) *contract.Response {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var last *contract.Response
	err := h.Events(ctx, id, alice, 0, func(_ uint64, ev *contract.Event) error {
		if ev.Type == contract.EventFinal {
			last = ev.Response
		}
		return nil
	})
	if err != nil || last == nil {
		rec, _ := h.requests.Get(context.Background(), id)
		h.t.Fatalf("request %s: got error %v and record %+v, want it ended", id, err, rec)
	}
	return last
}

// agents is a dispatch.Target with a function for each agent.
type agents struct {
	mu    sync.Mutex
	do    map[string]func(context.Context, dispatch.Call) dispatch.Outcome
	calls []dispatch.Call
	begun chan dispatch.Call // tasks that wait for the test
	stops chan string        // ids of cancelled tasks

	minted chan string // ids of tasks for which a token was minted in advance
}

func newAgents() *agents {
	return &agents{
		do:    map[string]func(context.Context, dispatch.Call) dispatch.Outcome{},
		begun: make(chan dispatch.Call, 100), stops: make(chan string, 100), minted: make(chan string, 100),
	}
}

func (a *agents) Execute(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	a.mu.Lock()
	a.calls = append(a.calls, c)
	do := a.do[c.Agent.ID]
	a.mu.Unlock()
	if do == nil {
		return dispatch.Outcome{Result: success("done by " + c.Agent.ID), Attempts: max(c.Task.Attempt, 1), Health: dispatch.HealthGood}
	}
	return do(ctx, c)
}

// Prepare returns a token with the id of the task.
func (a *agents) Prepare(_ context.Context, c dispatch.Call) dispatch.Token {
	a.minted <- c.Task.TaskID
	return dispatch.Token{Value: c.Task.TaskID}
}

func (a *agents) CancelTask(c dispatch.Call) { a.stops <- c.Task.TaskID }

func (a *agents) setBehaviour(id string, do func(context.Context, dispatch.Call) dispatch.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.do[id] = do
}

// hang blocks until the context ends.
func (a *agents) hang(ctx context.Context, c dispatch.Call) dispatch.Outcome {
	a.begun <- c
	<-ctx.Done()
	return dispatch.Outcome{
		Attempts: 1, MayHaveExecuted: !c.Agent.Endpoint.Idempotent,
		Err: &contract.TaskError{Code: contract.TaskWasCancelled, Detail: "the caller disconnected"},
	}
}

// acceptLater accepts the task with 202; the test posts the result.
func (a *agents) acceptLater(_ context.Context, c dispatch.Call) dispatch.Outcome {
	a.begun <- c
	return dispatch.Outcome{Pending: true, Attempts: 1, Health: dispatch.HealthGood}
}

func (a *agents) dispatchedTo() (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.calls {
		ids = append(ids, a.calls[i].Agent.ID)
	}
	return ids
}

func success(answer string) *contract.Result {
	return &contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(`"` + answer + `"`)}}
}

// callbackResult returns the grant of the call's task, and a successful result with this answer.
func callbackResult(c *dispatch.Call, answer string) (contract.TaskGrant, *contract.Result) {
	res := success(answer)
	res.TaskID = c.Task.TaskID
	return contract.TaskGrant{AgentID: c.Agent.ID, RequestID: c.Task.RequestID, TaskID: c.Task.TaskID}, res
}
