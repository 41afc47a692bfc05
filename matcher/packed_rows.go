package matcher

import (
	"slices"
)

// packedRows is a list of rows in compressed sparse row form: row i is
// items[start[i]:start[i+1]].
type packedRows struct {
	start []uint32
	items []int32
}

func (t *packedRows) rowCount() int { return len(t.start) - 1 }

func (t *packedRows) row(i int32) []int32 {
	return t.items[t.start[i]:t.start[i+1]]
}

// endRow ends the row whose items were appended.
func (t *packedRows) endRow() {
	t.start = append(t.start, uint32(len(t.items)))
}

func newPackedRows(rows, items int) packedRows {
	return packedRows{start: append(make([]uint32, 0, rows+1), 0), items: make([]int32, 0, items)}
}

// transpose turns agent → labels into label → agents, or back: row l of the result
// contains, in ascending order, the rows of t that contain l. It is a counting sort.
func (t *packedRows) transpose(labels int) packedRows {
	inv := packedRows{start: make([]uint32, labels+1), items: make([]int32, len(t.items))}
	for _, l := range t.items {
		inv.start[l+1]++
	}
	for l := range labels {
		inv.start[l+1] += inv.start[l]
	}
	next := slices.Clone(inv.start[:labels])
	for i := range t.rowCount() {
		for _, l := range t.row(int32(i)) {
			inv.items[next[l]] = int32(i)
			next[l]++
		}
	}
	return inv
}
