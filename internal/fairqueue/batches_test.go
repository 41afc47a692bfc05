package fairqueue

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func takeAll(q *BatchQueue[string, string]) []string {
	return q.Take(func([]string) bool { return true })
}

func TestBatchQueue_HoldsDelayedItems(t *testing.T) {
	q := NewBatchQueue[string, string](10)
	push := func(item string, delayed bool) {
		t.Helper()
		if err := q.Push(t.Context(), item, item, delayed); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := takeAll(q); !slices.Equal(got, want) {
			t.Errorf("%s: got items %v, want %v", when, got, want)
		}
	}
	push("a", true)
	expect("a delayed item alone")
	push("b", false)
	expect("beside another one", "a", "b")
	push("c", true)
	expect("behind a batch")
	if !q.StartDelay() || q.StartDelay() {
		t.Error("want one delay for all delayed items")
	}
	q.EndDelay()
	expect("after the delay", "c")
	push("d", true)
	q.Close()
	expect("when the queue is closed", "d")
	if q.urgent != 0 || q.due {
		t.Errorf("got %d urgent, due %v in an empty queue, want none", q.urgent, q.due)
	}
}

func TestBatchQueue_LimitsBatch(t *testing.T) {
	q := NewBatchQueue[string, string](10)
	for _, item := range []string{"a1", "a2", "a3", "b1"} {
		if err := q.Push(t.Context(), item[:1], item, false); err != nil {
			t.Fatal(err)
		}
	}
	two := func(batch []string) bool { return len(batch) < 2 }
	for _, want := range [][]string{{"a1", "b1"}, {"a2", "a3"}, nil} {
		if got := q.Take(two); !slices.Equal(got, want) {
			t.Errorf("got batch %v, want %v", got, want)
		}
	}
}

func TestBatchQueue_SignalsItems(t *testing.T) {
	q := NewBatchQueue[string, string](10)
	signalled := func() bool {
		select {
		case <-q.Filled():
			return true
		default:
			return false
		}
	}
	for _, step := range []struct {
		delayed, start, want bool
	}{{true, true, true}, {true, false, false}, {false, false, true}} {
		if err := q.Push(t.Context(), "a", "item", step.delayed); err != nil {
			t.Fatal(err)
		}
		if got := signalled(); got != step.want {
			t.Errorf("%+v: got a signal (%v), want none", step, got)
		}
		if step.start {
			q.StartDelay()
		}
	}
}

func TestBatchQueue_RejectsItemsAfterClose(t *testing.T) {
	q := NewBatchQueue[string, string](10)
	if err := q.Push(t.Context(), "a", "before", false); err != nil {
		t.Fatal(err)
	}
	q.Close()
	if err := q.Push(t.Context(), "a", "after", false); !errors.Is(err, ErrClosed) {
		t.Errorf("got error %v, want %v", err, ErrClosed)
	}
	if got := takeAll(q); !slices.Equal(got, []string{"before"}) {
		t.Errorf("got items %v after Close, want the one from before", got)
	}
}

func TestBatchQueue_RejectsItemWithoutSpaceWhenContextEnds(t *testing.T) {
	q := NewBatchQueue[string, string](1)
	if err := q.Push(t.Context(), "a", "first", false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	cancel(cause)
	if err := q.Push(ctx, "a", "second", false); !errors.Is(err, cause) {
		t.Errorf("got error %v, want the cause of the context", err)
	}
	if takeAll(q); q.Push(t.Context(), "a", "third", false) != nil || q.Len() != 1 {
		t.Errorf("got %d items, want space for one more after Take", q.Len())
	}
}
