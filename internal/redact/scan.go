package redact

import (
	"cmp"
	"slices"
)

// span is a value in a text: text[start:end].
type span struct {
	start, end int
	row        int // of its detector; set by searchText
}

func (s span) len() int { return s.end - s.start }

// findValues returns the values of the kinds, and everything that looks like a
// placeholder, in order and without overlaps.
func findValues(text string, of kindSet) []span {
	counts := countBytes(text)
	if counts.seen&classNonASCII == 0 || !needsFolding(text) {
		return searchText(text, counts, of, nil, 0, 0)
	}
	f := foldText(text)
	found := searchText(f.text, countBytes(f.text), of, nil, 0, 0)
	for i := range found {
		found[i].start, found[i].end = f.starts[found[i].start], f.ends[found[i].end-1]
	}
	return found
}

// maxDepth bounds the repeated scans of the gaps between values. Real texts
// need one.
const maxDepth = 16

// searchText appends the values in text to found, with positions shifted by
// base.
func searchText(text string, counts byteCounts, of kindSet, found []span, base, depth int) []span {
	fresh := findAll(text, counts, of, nil)
	if len(fresh) == 0 {
		return found
	}
	fresh = resolveOverlaps(fresh)
	// Scan the gaps again, because a discarded or adjacent value may have
	// hidden another one.
	at := 0
	rest := func(end int) {
		if gap := text[at:end]; gap != "" && depth < maxDepth {
			found = searchText(gap, countBytes(gap), of, found, base+at, depth+1)
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

func findAll(text string, counts byteCounts, of kindSet, found []span) []span {
	for row := range detectors[:literalRow] {
		if !of.has(row) || detectors[row].find == nil || !detectors[row].possible(counts) {
			continue
		}
		n := len(found)
		found = detectors[row].find(text, found)
		for i := range found[n:] {
			found[n+i].row = row
		}
	}
	if of&nationalIDs != 0 && counts.mayHaveNationalID() {
		found = findNationalIDs(text, of, found)
	}
	if detectors[literalRow].possible(counts) {
		found = findPlaceholders(text, found)
	}
	return found
}

// resolveOverlaps sorts the values. Of overlapping ones it keeps the longer one
// or, if equal, the one with the earlier detector.
func resolveOverlaps(found []span) []span {
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
