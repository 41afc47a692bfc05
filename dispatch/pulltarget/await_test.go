package pulltarget

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/requests"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newOffer returns a task of the agent "puller" whose request has one minute left, half of which is
// reserved for its standby.
func newOffer(t *testing.T, idempotent bool) (*requests.Task, dispatch.Call) {
	t.Helper()
	now := time.Now()
	agent := &contract.RegistryEntry{ID: "puller", Endpoint: contract.Endpoint{Protocol: contract.ProtocolPull, Idempotent: idempotent}}
	c := dispatch.Call{Agent: agent, Task: contract.Task{TaskID: "t", Deadline: now.Add(time.Minute)}, Standbys: 1}
	ctx, cancel := context.WithDeadline(t.Context(), c.Task.Deadline)
	defer cancel()
	return &requests.Task{
		ID: "t", AgentID: "puller", State: requests.TaskWaiting, SentAt: now, Idempotent: idempotent, Pull: NewPull(ctx, c, now),
	}, c
}

// leaseOnce leases the task to a worker.
func leaseOnce(task *requests.Task, ttl time.Duration) {
	task.Pull.Leases++
	task.Attempts, task.Pull.Until = task.Pull.Leases, time.Now().Add(ttl)
}

func TestOffers_AwaitFollowsTable(t *testing.T) {
	unavailable, unknown, late := contract.TaskAgentUnavailable, contract.TaskOutcomeUnknown, contract.TaskDeadlineExceeded
	for _, tc := range []struct {
		name        string
		change      func(*requests.Task) // at each read of the task
		refusal     string
		once, often contract.TaskCode // not idempotent, idempotent
		uncertain   bool              // if it is not idempotent
		health      dispatch.Health
		took        time.Duration // if it is not idempotent
	}{
		{"never pulled", func(*requests.Task) {}, "", unavailable, unavailable, false, dispatch.HealthBad, 30 * time.Second},
		{"refused", func(*requests.Task) {}, "is draining", unavailable, unavailable, false, dispatch.HealthUnknown, 0},
		{"one lease expires", func(task *requests.Task) {
			if task.Pull.Leases == 0 {
				leaseOnce(task, 2*time.Second)
			}
		}, "", unknown, late, true, dispatch.HealthBad, 2 * time.Second},
		{"all leases expire", func(task *requests.Task) {
			if phase, _ := task.PhaseAt(time.Now()); phase == requests.PullOffered {
				leaseOnce(task, time.Second)
			}
		}, "", unknown, late, true, dispatch.HealthBad, time.Second},
		{"lease renewed until the end", func(task *requests.Task) {
			if task.Pull.Leases == 0 {
				leaseOnce(task, time.Second)
			}
			task.Pull.Until = time.Now().Add(time.Second)
		}, "", unknown, late, true, dispatch.HealthBad, time.Minute},
	} {
		for _, idempotent := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					task, c := newOffer(t, idempotent)
					start := time.Now()
					ctx, cancel := context.WithDeadline(t.Context(), c.Task.Deadline)
					defer cancel()
					out, arrived := NewOffers().Await(ctx, &Wait{
						Offer: Offer{"puller", "r", "t"}, Call: c, SentAt: start, Arrived: make(chan struct{}), Now: time.Now, Announce: func(Offer) {},
						Read:    func(context.Context) (*requests.Task, error) { tc.change(task); return task, nil },
						Refusal: func() string { return tc.refusal },
						Changed: func() <-chan struct{} { return nil },
					})
					want := map[bool]contract.TaskCode{false: tc.once, true: tc.often}[idempotent]
					if arrived || out.Err == nil || out.Err.Code != want || out.MayHaveExecuted != (tc.uncertain && !idempotent) || out.Health != tc.health {
						t.Errorf("idempotent %v: got %+v %+v, want %s", idempotent, out, out.Err, want)
					}
					if took := time.Since(start); !idempotent && took.Round(time.Second) != tc.took {
						t.Errorf("got a wait of %s, want %s", took, tc.took)
					}
				})
			})
		}
	}
}

// A task is given up as soon as the registry has no instance of its agent that could pull it, and
// not because of other changes. A worker that has leased the task keeps it.
func TestOffers_AwaitEndsWhenAgentIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		leased bool
		code   contract.TaskCode
		took   time.Duration
	}{
		"offered": {false, contract.TaskAgentUnavailable, 12 * time.Second},
		"leased":  {true, contract.TaskOutcomeUnknown, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task, c := newOffer(t, false)
				if tc.leased {
					leaseOnce(task, 20*time.Second)
				}
				start := time.Now()
				ctx, cancel := context.WithDeadline(t.Context(), c.Task.Deadline)
				defer cancel()
				var gone atomic.Bool
				var changes atomic.Pointer[chan struct{}]
				renew := func() *chan struct{} {
					next := make(chan struct{})
					return changes.Swap(&next)
				}
				renew()
				change := func() { close(*renew()) }
				w := &Wait{
					Offer: Offer{"puller", "r", "t"}, Call: c, SentAt: start, Arrived: make(chan struct{}), Now: time.Now, Announce: func(Offer) {},
					Read: func(context.Context) (*requests.Task, error) { return task, nil },
					Refusal: func() string {
						if gone.Load() {
							return "puller has expired"
						}
						return ""
					},
					Changed: func() <-chan struct{} { return *changes.Load() },
					Gone:    gone.Load,
				}
				ended := make(chan dispatch.Outcome, 1)
				go func() {
					out, _ := NewOffers().Await(ctx, w)
					ended <- out
				}()
				<-time.After(10 * time.Second) // the next poll is at 15 s
				synctest.Wait()
				change() // of another agent
				<-time.After(2 * time.Second)
				synctest.Wait()
				gone.Store(true)
				change()
				out := <-ended
				if took := time.Since(start); out.Err == nil || out.Err.Code != tc.code || took != tc.took {
					t.Errorf("got %+v %+v after %s, want %s after %s", out, out.Err, took, tc.code, tc.took)
				}
			})
		})
	}
}

func TestOffers_AwaitEndsWithoutFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		read    func(*requests.Task) (*requests.Task, error)
		cause   error // of the end of the context
		result  bool
		pending bool
		code    contract.TaskCode
	}{
		"result arrives":                   {result: true},
		"store fails":                      {read: func(*requests.Task) (*requests.Task, error) { return nil, errors.New("down") }, result: true},
		"another process resumes the task": {read: func(*requests.Task) (*requests.Task, error) { return nil, nil }, pending: true},
		"process stops":                    {cause: dispatch.ErrHandedOver, pending: true},
		"caller disconnects":               {cause: context.Canceled, code: contract.TaskWasCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task, c := newOffer(t, false)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				result := make(chan struct{})
				reads := 0
				w := &Wait{
					Offer: Offer{"puller", "r", "t"}, Call: c, SentAt: time.Now(), Arrived: result, Now: time.Now, Announce: func(Offer) {},
					Read: func(context.Context) (*requests.Task, error) {
						if reads++; reads == 3 && tc.result {
							close(result)
						}
						if reads == 3 && tc.cause != nil {
							cancel(tc.cause)
						}
						if tc.read != nil {
							return tc.read(task)
						}
						return task, nil
					},
					Refusal: func() string { return "" },
					Changed: func() <-chan struct{} { return nil },
				}
				o := NewOffers()
				out, arrived := o.Await(ctx, w)
				var code contract.TaskCode
				if out.Err != nil {
					code = out.Err.Code
				}
				if arrived != tc.result || out.Pending != tc.pending || code != tc.code || out.MayHaveExecuted {
					t.Errorf("got %+v, arrived %v, want arrived %v, pending %v, code %q", out, arrived, tc.result, tc.pending, tc.code)
				}
				if len(o.agents) != 0 {
					t.Error("got the task still offered, want it withdrawn")
				}
			})
		})
	}
}

func TestOffers_TakesOldestFirst(t *testing.T) {
	o, now := NewOffers(), time.Now()
	for _, id := range []string{"a", "b", "c"} {
		o.Add(Offer{"puller", "r", id})
	}
	o.Announced(Offer{"puller", "r", "d"}, now.Add(-2*announcementTTL))
	var got strings.Builder
	first, _, _ := o.take("puller", now)
	o.endTake(first, now.Add(time.Minute))
	for taken, _, _ := o.take("puller", now); taken != nil; taken, _, _ = o.take("puller", now) {
		got.WriteString(taken.TaskID)
	}
	if got.String() != "bc" {
		t.Errorf("got %s, want b and c, because a was postponed and d has expired", got.String())
	}
	if _, next, _ := o.take("puller", now); !next.Equal(now.Add(time.Minute)) {
		t.Errorf("got next poll at %s, want that of a", next)
	}
}

// Announcements for agents that poll another process do not accumulate.
func TestOffers_DropsOldAnnouncements(t *testing.T) {
	o, now := NewOffers(), time.Now()
	for i := range 100 {
		o.Announced(Offer{"puller" + strconv.Itoa(i%7), "r", strconv.Itoa(i)}, now)
	}
	o.Announced(Offer{"puller", "r", "again"}, now.Add(announcementTTL))
	o.Announced(Offer{"puller", "r", "last"}, now.Add(3*announcementTTL))
	if len(o.byTask) != 1 || len(o.agents) != 1 {
		t.Errorf("got %d offers for %d agents, want only the last one", len(o.byTask), len(o.agents))
	}
}
