package redact

import (
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// Masking is what was masked in one request. Mask the texts one after the other,
// in a fixed order: the numbers in the placeholders follow it.
type Masking struct {
	r *Redactor

	mu     sync.RWMutex
	of     map[value]string // placeholder
	values map[string]kept  // by placeholder
	counts [len(kinds)]int
}

// value is a text of a kind, as it was written.
type value struct {
	row  int
	text string
}

// kept is a value as it is put back. Beside placeholders that stay it is put back
// as shown: what looks like one of them in it is masked, too.
type kept struct {
	value
	shown string
}

// StartMasking starts the masking of a request.
func (r *Redactor) StartMasking() *Masking { return &Masking{r: r} }

// MaskText replaces all values in a text by placeholders such as [EMAIL_1]. A value
// has the same placeholder in every text of the request.
func (m *Masking) MaskText(text string) string { return m.mask(text, 0) }

// mask leaves the kinds to show as they are.
func (m *Masking) mask(text string, show kindSet) string {
	found := scan(text, m.r.kinds)
	if len(found) == 0 {
		return text
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replace(text, found, 0, show)
}

// replace masks what was found in text[from:], which it returns. m.mu is held.
func (m *Masking) replace(text string, found []span, from int, show kindSet) string {
	var b strings.Builder
	at := from
	put := func(f span) {
		b.WriteString(text[at:f.start])
		b.WriteString(m.placeholder(value{f.row, text[f.start:f.end]}))
		at = f.end
	}
	for _, f := range found {
		switch {
		case f.start < from, f.start == f.end: // of what stands around the text
		case show.has(f.row) || m.r.allowed(f.row, text[f.start:f.end]):
			// The value stays, but what looks like a placeholder in it does not.
			for _, l := range findPlaceholders(text[f.start:f.end], nil) {
				put(span{f.start + l.start, f.start + l.end, literal})
			}
		default:
			put(f)
		}
	}
	if at == from {
		return text[from:]
	}
	b.WriteString(text[at:])
	return b.String()
}

// placeholder returns the one of the value, a new one if it has none. m.mu is held.
func (m *Masking) placeholder(v value) string {
	if p, ok := m.of[v]; ok {
		return p
	}
	if m.of == nil {
		m.of, m.values = map[value]string{}, map[string]kept{}
	}
	m.counts[v.row]++
	p := placeholder(v.row, m.counts[v.row])
	v.text = strings.Clone(v.text) // it may be a part of something much longer
	m.of[v], m.values[p] = p, kept{value: v, shown: v.text}
	if v.row != literal {
		if shown := m.replace(v.text, findPlaceholders(v.text, nil), 0, 0); shown != v.text {
			m.values[p] = kept{value: v, shown: shown}
		}
	}
	return p
}

// Kinds returns the kinds found so far, sorted; never nil.
func (m *Masking) Kinds() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := []string{}
	for row, n := range m.counts[:literal] {
		if n > 0 {
			found = append(found, kinds[row].name)
		}
	}
	slices.Sort(found)
	return found
}

// The words of a contract.Restore that are not kinds.
const (
	all  = "all"
	none = "none"
)

// wanted returns the kinds, and whether what looked like a placeholder is among
// what is wanted: only all comes back with it, as beside placeholders that stay
// nobody could tell it from them.
func wanted(want contract.Restore) (set kindSet, everything bool) {
	if want == nil || slices.Contains(want, all) {
		return everyKind | 1<<literal, true
	}
	for _, name := range want {
		if row := rowOf(name); row >= 0 {
			set |= 1 << row
		}
	}
	return set, false
}

// RestoreText puts values back in place of their placeholders: those of the kinds
// wanted; nil and "all" mean everything, "none" nothing. A placeholder this
// request does not have stays as it is.
func (m *Masking) RestoreText(text string, want contract.Restore) string {
	set, everything := wanted(want)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if set == 0 || len(m.values) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for i := strings.IndexByte(text, '['); i >= 0; {
		end := placeholderEnd(text, i)
		if end > 0 {
			if v, ok := m.values[text[i:end]]; ok && set.has(v.row) {
				b.WriteString(text[at:i])
				if everything {
					b.WriteString(v.text)
				} else {
					b.WriteString(v.shown)
				}
				at = end
			}
		}
		next := strings.IndexByte(text[i+1:], '[')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if at == 0 {
		return text
	}
	b.WriteString(text[at:])
	return b.String()
}
