package redact

import (
	"cmp"
	"slices"
)

// span is where a value stands: text[start:end].
type span struct {
	start, end int
	row        int // of its kind; filled in by search
}

func (s span) len() int { return s.end - s.start }

// scan returns where the values of the kinds, and what looks like a placeholder,
// stand in a text: in order, none overlapping.
func scan(text string, of kindSet) []span {
	l := look(text)
	if l.seen&wide == 0 || !foldable(text) {
		return search(text, l, of, nil, 0, 0)
	}
	f := fold(text)
	found := search(f.text, look(f.text), of, nil, 0, 0)
	for i := range found {
		found[i].start, found[i].end = f.starts[found[i].start], f.ends[found[i].end-1]
	}
	return found
}

// maxDepth bounds how often what is left over is looked at again. Once is enough
// for what people write.
const maxDepth = 16

// search appends what it finds, moved by base, to found.
func search(text string, l looks, of kindSet, found []span, base, depth int) []span {
	fresh := findAll(text, l, of, nil)
	if len(fresh) == 0 {
		return found
	}
	fresh = resolve(fresh)
	// A find hides what it overlapped, and what it touched: with it gone there
	// may be a value beside it.
	at := 0
	rest := func(end int) {
		if gap := text[at:end]; gap != "" && depth < maxDepth {
			found = search(gap, look(gap), of, found, base+at, depth+1)
		}
	}
	for _, s := range fresh {
		rest(s.start)
		found = append(found, span{base + s.start, base + s.end, s.row})
		at = s.end
	}
	rest(len(text))
	return found
}

func findAll(text string, l looks, of kindSet, found []span) []span {
	for row := range kinds[:literal] {
		if !of.has(row) || !kinds[row].maybe(l) {
			continue
		}
		n := len(found)
		found = kinds[row].find(text, found)
		for i := range found[n:] {
			found[n+i].row = row
		}
	}
	if kinds[literal].maybe(l) {
		found = findPlaceholders(text, found)
	}
	return found
}

// resolve sorts finds and leaves of those that overlap the longer, then the one
// of the more specific kind.
func resolve(found []span) []span {
	slices.SortFunc(found, func(a, b span) int {
		return cmp.Or(a.start-b.start, b.end-a.end, a.row-b.row)
	})
	kept := found[:1]
	for _, s := range found[1:] {
		last := &kept[len(kept)-1]
		switch {
		case s.start >= last.end:
			kept = append(kept, s)
		case s.len() > last.len(), s.len() == last.len() && s.row < last.row:
			*last = s
		}
	}
	return kept
}
