package fairqueue

import (
	"slices"
	"testing"
)

func popAll(q *Queue[string, int]) (got []int) {
	for q.Len() > 0 {
		item, _ := q.Pop()
		got = append(got, item)
	}
	return got
}

func TestQueue_ServesOwnersInTurn(t *testing.T) {
	var q Queue[string, int]
	for i, owner := range []string{"loud", "loud", "loud", "quiet", "other", "quiet"} {
		q.Push(owner, i)
	}
	if got, want := popAll(&q), []int{0, 3, 4, 1, 5, 2}; !slices.Equal(got, want) {
		t.Errorf("got items %v, want %v", got, want)
	}
	if item, ok := q.Pop(); ok || len(q.items)+len(q.turns) != 0 {
		t.Errorf("got item %d, %v, items %v, turns %v; want none", item, ok, q.items, q.turns)
	}
}

func TestQueue_ServesNewOwnerAfterOneItemOfEachOther(t *testing.T) {
	var q Queue[string, int]
	for i := range 4 {
		q.Push("loud", i)
	}
	q.Pop()
	q.Push("quiet", 9)
	if got, want := popAll(&q), []int{1, 9, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("got items %v, want %v", got, want)
	}
}

func TestQueue_RemovesItem(t *testing.T) {
	var q Queue[string, int]
	q.Push("loud", 1)
	q.Push("loud", 2)
	q.Push("quiet", 3)
	if q.Remove("quiet", 1) || !q.Remove("loud", 1) || !q.Remove("quiet", 3) || q.Remove("quiet", 3) {
		t.Error("got another result of Remove, want true once for each item of its owner")
	}
	q.Push("quiet", 4)
	if got, want := popAll(&q), []int{2, 4}; !slices.Equal(got, want) {
		t.Errorf("got items %v, want %v", got, want)
	}
}
