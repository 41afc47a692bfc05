package events

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

const (
	decided  = contract.EventDecision
	started  = contract.EventTaskStarted
	progress = contract.EventTaskProgress
	done     = contract.EventTaskDone
	final    = contract.EventFinal
)

// whole lists the events of one request.
var whole = []contract.EventType{decided, started, progress, done, final}

func TestRead_ReturnsStoredEvents(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	for _, typ := range whole { // interleave two requests
		publish(t, s, "r-1", typ)
		publish(t, s, "r-2", typ)
	}
	var all eventRecorder
	must(t, s.Read(t.Context(), "r-1", 0, all.record))
	if diff := cmp.Diff(whole, all.types); diff != "" {
		t.Fatalf("from the start (-want +got):\n%s", diff)
	}
	for i, seq := range all.seqs {
		for name, read := range map[string]readFunc{"Read": s.Read, "Follow": s.Follow} {
			var rest eventRecorder
			if name == "Follow" && i == len(whole)-1 {
				continue // Follow does not end after the final event
			}
			must(t, read(t.Context(), "r-1", seq, rest.record))
			if diff := cmp.Diff(all.seqs[i+1:], rest.seqs); len(rest.seqs) != len(all.seqs)-i-1 || len(rest.seqs) > 0 && diff != "" {
				t.Errorf("%s after event %d (-want +got):\n%s", name, i, diff)
			}
		}
	}
}

func TestRead_ReturnsNewEvents(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	publish(t, s, "r-1", decided, started)
	early := read(t.Context(), s.Read, "r-1", 0)
	testkit.WaitClosed(t, early.received)
	testkit.WaitClosed(t, early.received)
	publish(t, s, "r-2", whole...)
	publish(t, s, "r-1", progress)
	testkit.WaitClosed(t, early.received)
	late := read(t.Context(), s.Read, "r-1", early.seqs[0])
	testkit.WaitClosed(t, late.received)
	testkit.WaitClosed(t, late.received)
	publish(t, s, "r-1", done, final)
	must(t, testkit.Receive(t, early.err))
	must(t, testkit.Receive(t, late.err))
	if diff := cmp.Diff(whole, early.types); diff != "" {
		t.Errorf("early reader (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(early.seqs[1:], late.seqs); diff != "" {
		t.Errorf("late reader (-want +got):\n%s", diff)
	}
}

// Every reader receives the events exactly as published.
func TestPublish_KeepsEveryMember(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	percent := 12.5
	published := []*contract.Event{event("r-1", decided), event("r-1", progress), event("r-1", final)}
	published[0].Decision = &contract.Decision{DecisionID: "d1", Chosen: []string{"quality"}}
	published[1].Task = &contract.TaskReport{TaskID: "t1", AgentID: "quality", Status: contract.TaskRunning}
	published[1].Progress = &contract.Progress{Message: "metade", Percent: &percent, Data: map[string]json.RawMessage{"n": json.RawMessage(`1`)}}
	published[2].Response = &contract.Response{RequestID: "r-1", Status: contract.StatusCompleted}
	for _, ev := range published {
		must(t, publishNow(t.Context(), s, ev))
	}
	var got []*contract.Event
	must(t, s.Read(t.Context(), "r-1", 0, func(_ uint64, ev *contract.Event) error {
		got = append(got, ev)
		return nil
	}))
	for i := range published {
		want, have := published[i], got[i]
		if want.Type != have.Type || !want.At.Equal(have.At) || (want.Decision == nil) != (have.Decision == nil) {
			t.Errorf("event %d: got %+v, want %+v", i, have, want)
		}
	}
	if diff := cmp.Diff(published[1].Progress, got[1].Progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if got[2].Response == nil || got[2].Response.Status != contract.StatusCompleted {
		t.Errorf("got response %+v, want all of it", got[2].Response)
	}
}

func TestPublish_OmitsLongResponse(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	ev := event("r-1", final)
	ev.Response = &contract.Response{RequestID: "r-1", Status: contract.StatusCompleted}
	ev.Response.Data.Answer = strings.Repeat("x", maxEvent)
	must(t, publishNow(t.Context(), s, ev))
	must(t, s.Read(t.Context(), "r-1", 0, func(_ uint64, got *contract.Event) error {
		if got.Type != final || got.Response != nil {
			t.Errorf("got %s with response %v, want final without one", got.Type, got.Response)
		}
		return nil
	}))
	if ev.Response == nil {
		t.Error("got the published event changed, without its response")
	}
}

func TestRead_ReportsMissingEvents(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	publish(t, s, "first", decided)
	before, err := s.Position(t.Context())
	must(t, err)
	publish(t, s, "half", decided, started)
	publish(t, s, "headless", progress, done)
	publish(t, s, "short", final)
	now, err := s.Position(t.Context())
	must(t, err)
	tests := []struct {
		name, id string
		after    uint64
		want     error
	}{
		{"unknown request", "r-9", 0, ErrGone},
		{"unknown request, resumed", "r-9", now, ErrGone},
		{"no id", "", 0, ErrGone},
		{"wildcard id", "*", 0, ErrGone},
		{"multi-level wildcard id", ">", 0, ErrGone},
		{"id with a dot", "half.x", 0, ErrGone},
		{"start missing", "headless", 0, ErrGone},
		{"from a position after the missing start", "headless", before, errEnough},
		{"earlier life of the request", "half", 7, ErrGone},
		{"later position", "half", now + 1, ErrGone},
		{"maximum position", "half", ^uint64(0), ErrGone},
		{"stored events", "half", 0, errEnough},
		{"final event only", "short", 0, nil},
		{"after the final event", "short", now, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h eventRecorder
			if err := s.Read(t.Context(), tt.id, tt.after, h.until(2)); !errors.Is(err, tt.want) {
				t.Errorf("got error %v after %v, want %v", err, h.types, tt.want)
			}
		})
	}
}

func TestDelete_EndsReaders(t *testing.T) {
	log := openSharedLog(t)
	s, _ := startStream(t, log)
	publish(t, s, "r-1", decided, started)
	var h eventRecorder
	if err := s.Read(t.Context(), "r-1", 0, h.until(2)); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	publish(t, s, "r-1", progress, done)
	must(t, log.Trim(t.Context(), h.seqs[1]+2)) // the progress event is too old
	for name, after := range map[string]uint64{"start": 0, "first event": h.seqs[0], "before the deleted events": h.seqs[1]} {
		if err := s.Read(t.Context(), "r-1", after, h.record); !errors.Is(err, ErrGone) {
			t.Errorf("from %s: got error %v, want %v", name, err, ErrGone)
		}
	}
	var rest eventRecorder
	if err := s.Read(t.Context(), "r-1", h.seqs[1]+1, rest.until(1)); !errors.Is(err, errEnough) {
		t.Errorf("after the deleted events: got error %v, want the rest", err)
	}
	must(t, s.Delete(t.Context(), "r-1"))
	must(t, s.Delete(t.Context(), "no id"))
	if err := s.Read(t.Context(), "r-1", rest.seqs[0], h.record); !errors.Is(err, ErrGone) {
		t.Errorf("after Delete: got error %v, want %v", err, ErrGone)
	}
}

// Follow starts at the given position, so that a caller that knows the state of a request receives
// only newer events.
func TestFollow_StartsAtPosition(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	for _, id := range []string{"new", "old"} {
		if id == "old" {
			publish(t, s, id, decided, started)
		}
		from, err := s.Position(t.Context())
		must(t, err)
		l := read(t.Context(), s.Follow, id, from)
		publish(t, s, "other", decided)
		publish(t, s, id, done, final)
		must(t, testkit.Receive(t, l.err))
		if diff := cmp.Diff([]contract.EventType{done, final}, l.types); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", id, diff)
		}
	}
}

func TestRead_EndsWithContextAndCallback(t *testing.T) {
	s, _ := startStream(t, openLog(t))
	publish(t, s, "r-1", decided)
	ctx, cancel := context.WithCancel(t.Context())
	leaves := read(ctx, s.Read, "r-1", 0)
	testkit.WaitClosed(t, leaves.received)
	cancel()
	if err := testkit.Receive(t, leaves.err); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled reader: got error %v, want %v", err, context.Canceled)
	}
	var h eventRecorder
	if err := s.Read(t.Context(), "r-1", 0, h.until(1)); !errors.Is(err, errEnough) {
		t.Errorf("reader whose callback fails: got error %v, want %v", err, errEnough)
	}
	if n := len(s.readers); n != 0 {
		t.Errorf("got %d requests with readers, want none", n)
	}
}

// If an event cannot be published, its readers get ErrGone.
func TestEnqueue_FailureReachesReaders(t *testing.T) {
	var broken error
	s, _ := startStream(t, &faultyLog{eventLog: openLog(t), append: func() error { return broken }})
	publish(t, s, "r-1", decided)
	l := read(t.Context(), s.Read, "r-1", 0)
	testkit.WaitClosed(t, l.received)
	broken = store.ErrFull
	if err := publishNow(t.Context(), s, event("r-1", final)); !errors.Is(err, store.ErrFull) {
		t.Errorf("Err: got error %v, want %v", err, store.ErrFull)
	}
	if err := testkit.Receive(t, l.err); !errors.Is(err, ErrGone) {
		t.Errorf("Read: got error %v, want %v", err, ErrGone)
	}
	broken = nil
	if err := publishNow(t.Context(), s, event("r-2", decided)); err != nil {
		t.Errorf("Err after the log has recovered: got %v, want none", err)
	}
	if err := publishNow(t.Context(), s, event("no id", final)); err == nil {
		t.Error("event without a valid id: got no error, want one")
	}
	bad := event("r-1", progress)
	bad.Progress = &contract.Progress{Data: map[string]json.RawMessage{"x": json.RawMessage(`{`)}}
	if err := publishNow(t.Context(), s, bad); err == nil {
		t.Error("event with invalid JSON: got no error, want one")
	}
}

// If the log evicts messages faster than the follower reads, readers get them from the log, or get
// ErrGone.
func TestRun_ReadersRecoverMissedEvents(t *testing.T) {
	for name, want := range map[string]error{"kept": nil, "evicted": ErrGone} {
		t.Run(name, func(t *testing.T) {
			log := openSharedLog(t)
			missed := make(chan struct{})
			m := &faultyLog{eventLog: log, begun: make(chan struct{})}
			m.follow = func(msg store.Message) bool {
				ev, err := decodeEvent(msg)
				if err != nil || ev.Type != progress {
					return true
				}
				if want != nil {
					must(t, log.Trim(t.Context(), msg.Seq+1))
				}
				close(missed)
				return false
			}
			s, _ := startStream(t, m)
			testkit.WaitClosed(t, m.begun) // so that the reader need not read from the log
			publish(t, s, "r-1", decided)
			l := read(t.Context(), s.Read, "r-1", 0)
			testkit.WaitClosed(t, l.received)
			publish(t, s, "r-1", progress)
			testkit.WaitClosed(t, missed)
			publish(t, s, "r-1", done, final)
			if err := testkit.Receive(t, l.err); !errors.Is(err, want) {
				t.Fatalf("got error %v, want %v", err, want)
			}
			if diff := cmp.Diff([]contract.EventType{decided, progress, done, final}, l.types); want == nil && diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A restart of the engine loses all events, possibly including the final one of a request. Its
// readers get ErrGone, even if no further event is published.
func TestRun_LostLogEndsReaders(t *testing.T) {
	log := openSharedLog(t)
	lifetime, lose := context.WithCancel(t.Context())
	m := &faultyLog{eventLog: log, lifetimes: make(chan context.Context, 2)}
	m.lifetimes <- lifetime
	m.lifetimes <- t.Context()
	s, _ := startStream(t, m)
	publish(t, s, "r-1", decided)
	from, err := s.Position(t.Context())
	must(t, err)
	waiting := read(t.Context(), s.Read, "r-1", 0)
	testkit.WaitClosed(t, waiting.received)
	following := read(t.Context(), s.Follow, "r-1", from)

	publish(t, s, "r-2", decided, final)
	must(t, log.Purge(t.Context(), allSubjects))
	lose()

	for name, reader := range map[string]*asyncReader{"reader of stored events": waiting, "reader from a position": following} {
		if err := testkit.Receive(t, reader.err); !errors.Is(err, ErrGone) {
			t.Errorf("%s: got error %v, want %v", name, err, ErrGone)
		}
	}
	if err := s.Follow(t.Context(), "r-1", from, nil); !errors.Is(err, ErrGone) {
		t.Errorf("position in the earlier log: got error %v, want %v", err, ErrGone)
	}
	from, err = s.Position(t.Context())
	must(t, err)
	next := read(t.Context(), s.Follow, "r-1", from)
	publish(t, s, "r-1", final)
	must(t, testkit.Receive(t, next.err))
}

// A reader that starts before Run, or waits while Run is restarted, misses no event.
func TestRun_MayStartLate(t *testing.T) {
	s := newStream(testConfig(), openLog(t))
	publish(t, s, "r-1", decided)
	l := read(t.Context(), s.Read, "r-1", 0)
	testkit.WaitClosed(t, l.received)
	publish(t, s, "r-1", started)
	stop := runStream(t, s)
	testkit.WaitClosed(t, l.received)
	stop()
	publish(t, s, "r-1", progress, done, final)
	runStream(t, s)
	must(t, testkit.Receive(t, l.err))
	if diff := cmp.Diff(whole, l.types); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestRead_ReturnsStoreErrors(t *testing.T) {
	broken := errors.New("broken")
	m := &faultyLog{eventLog: openLog(t)}
	s, stop := startStream(t, m)
	publish(t, s, "r-1", decided)
	from, err := s.Position(t.Context())
	must(t, err)
	stop()
	m.last = broken
	if err := s.Read(t.Context(), "r-1", from, nil); !errors.Is(err, broken) {
		t.Errorf("Read at the newest event: got error %v, want %v", err, broken)
	}
	m.last = nil
	m.next = broken
	if err := s.Read(t.Context(), "r-1", 0, nil); !errors.Is(err, broken) {
		t.Errorf("Read: got error %v, want %v", err, broken)
	}
	m.last, m.info = broken, broken
	if _, err := s.Position(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Position: got error %v, want %v", err, broken)
	}
	if err := s.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Run: got error %v, want %v", err, broken)
	}
}

func TestRead_TreatsDamagedEventAsGone(t *testing.T) {
	log := openLog(t)
	s, _ := startStream(t, log)
	publish(t, s, "r-1", decided)
	l := read(t.Context(), s.Read, "r-1", 0)
	testkit.WaitClosed(t, l.received)
	_, err := log.Append(t.Context(), prefix+"r-1", []byte("{"), store.AppendOptions{})
	must(t, err)
	if err := testkit.Receive(t, l.err); !errors.Is(err, ErrGone) {
		t.Errorf("reading new events: got error %v, want %v", err, ErrGone)
	}
	var h eventRecorder
	if err := s.Read(t.Context(), "r-1", 0, h.record); !errors.Is(err, ErrGone) {
		t.Errorf("reading stored events: got error %v, want %v", err, ErrGone)
	}
}
