package fairqueue

import "slices"

// Queue holds items of several owners. Pop takes the first item of each owner in turn, so
// that the items of one owner stay in order, and a new item of an owner without any others
// waits for at most one item of each other owner. The zero value is empty. The caller
// guards it.
type Queue[Owner, Item comparable] struct {
	items map[Owner][]Item // without empty ones
	turns []Owner          // owners with items; the first is next
	size  int
}

// Len returns the number of items.
func (q *Queue[Owner, Item]) Len() int { return q.size }

// Push adds an item behind those of its owner.
func (q *Queue[Owner, Item]) Push(owner Owner, item Item) {
	if q.items == nil {
		q.items = map[Owner][]Item{}
	}
	if len(q.items[owner]) == 0 {
		q.turns = append(q.turns, owner)
	}
	q.items[owner] = append(q.items[owner], item)
	q.size++
}

// Pop removes the next item, or returns false if there is none.
func (q *Queue[Owner, Item]) Pop() (item Item, ok bool) {
	if len(q.turns) == 0 {
		return item, false
	}
	owner := q.turns[0]
	items := q.items[owner]
	item = items[0]
	var none Item
	items[0] = none // do not keep it alive in the array of the slice
	q.turns = q.turns[1:]
	if q.setItems(owner, items[1:]); len(items) > 1 { // behind all others
		q.turns = append(q.turns, owner)
	}
	q.size--
	return item, true
}

// Remove removes an item of an owner, and reports whether it was there.
func (q *Queue[Owner, Item]) Remove(owner Owner, item Item) bool {
	items := q.items[owner]
	i := slices.Index(items, item)
	if i < 0 {
		return false
	}
	if items = slices.Delete(items, i, i+1); len(items) == 0 {
		at := slices.Index(q.turns, owner)
		q.turns = slices.Delete(q.turns, at, at+1)
	}
	q.setItems(owner, items)
	q.size--
	return true
}

func (q *Queue[Owner, Item]) setItems(owner Owner, items []Item) {
	if len(items) == 0 {
		delete(q.items, owner)
		return
	}
	q.items[owner] = items
}
