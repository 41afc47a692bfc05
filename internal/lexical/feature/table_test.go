package feature

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFeatureTable compares the table with a map, including hash collisions.
func TestFeatureTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hashes := rapid.SliceOf(rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32())).Draw(t, "hashes")
		tab := NewTable(0)
		want := map[uint32]int32{}
		for _, h := range hashes {
			if _, ok := want[h]; !ok {
				want[h] = int32(len(want))
			}
			if got := tab.Insert(h); got != want[h] {
				t.Fatalf("add %d: got number %d, want %d", h, got, want[h])
			}
		}
		fitted := tab.ShrinkToFit()
		for _, h := range append(hashes, 7, 1<<31) {
			number, ok := want[h]
			if !ok {
				number = -1
			}
			if a, b := tab.Lookup(h), fitted.Lookup(h); a != number || b != number {
				t.Fatalf("find %d: got %d, and %d where fitted; want %d", h, a, b, number)
			}
		}
		if tab.Size != len(want) || fitted.Size != len(want) {
			t.Errorf("got sizes %d and %d, want %d", tab.Size, fitted.Size, len(want))
		}
	})
}
