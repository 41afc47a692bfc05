package lexical

import (
	"cmp"
	"slices"
	"strings"
)

// NearestExamples returns at most limit of the corpus's examples, most like the text
// first. keep is asked about each in that order and may refuse it. Examples that
// have too little in common with the text are not among them.
func (m *Model) NearestExamples(text string, limit int, keep func(intent, example string) bool) []string {
	r := m.read(text)
	defer m.readers.Put(r)
	type near struct {
		pattern  *pattern
		likeness float64
	}
	var all []near
	for _, i := range r.reached() {
		p := &m.patterns[i]
		if p.kind != isExample || p.text == "" {
			continue
		}
		if o := r.compare(p); o.content > 0 {
			all = append(all, near{p, likeness(o.weight, r.weight, p.weight)})
		}
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), strings.Compare(a.pattern.text, b.pattern.text),
			cmp.Compare(a.pattern.intent, b.pattern.intent))
	})
	var texts []string
	for _, n := range all {
		if len(texts) == limit {
			break
		}
		if !slices.Contains(texts, n.pattern.text) && keep(m.intents[n.pattern.intent], n.pattern.text) {
			texts = append(texts, n.pattern.text)
		}
	}
	return texts
}
