package router

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestRemembered holds the memory to a model of it: a map with times, of which
// only as many of the latest count as there is room for.
func TestRemembered(t *testing.T) {
	const most, ttl = 3, 10 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		r := newRemembered[int, string](most, ttl, func() time.Time { return now })
		type entry struct {
			value string
			at    time.Time
		}
		model, order := map[int]entry{}, []int{}
		touch := func(key int) {
			for i, k := range order {
				if k == key {
					order = append(order[:i], order[i+1:]...)
					break
				}
			}
			order = append(order, key)
		}
		expire := func() {
			for len(order) > 0 && now.Sub(model[order[0]].at) >= ttl {
				delete(model, order[0])
				order = order[1:]
			}
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 5).Draw(t, "key")
			expire()
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				now = now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "seconds")) * time.Second)
			case 1:
				if got, want := r.recall(key), model[key].value; got != want {
					t.Fatalf("recall(%d): got %q, want %q", key, got, want)
				}
			case 2:
				if _, ok := model[key]; !ok && len(order) == most {
					delete(model, order[0])
					order = order[1:]
				}
				value := model[key].value + fmt.Sprint(i)
				model[key] = entry{value, now}
				touch(key)
				r.change(key, func(old string) string { return old + fmt.Sprint(i) })
			}
			if len(r.at) != r.order.Len() || len(r.at) > most {
				t.Fatalf("got %d keys and %d in order, want as many, at most %d", len(r.at), r.order.Len(), most)
			}
		}
	})
}
