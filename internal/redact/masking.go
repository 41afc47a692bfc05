package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/caprouter/caprouter/contract"
)

// Masking contains the values masked in one request. It is safe for concurrent
// use. Mask the texts of a request in a fixed order, because the placeholders
// are numbered in order of appearance.
type Masking struct {
	redactor *Redactor

	mu           sync.RWMutex
	placeholders map[maskedValue]string // placeholder
	values       map[string]restorable  // by placeholder
	counts       [len(detectors)]int32
}

// maskedValue is a value of a kind as it was written.
type maskedValue struct {
	row  int
	text string
}

// restorable is a value to restore. If only some kinds are restored, masked is
// used instead: it is the value with everything that looks like a placeholder
// masked.
type restorable struct {
	maskedValue
	masked string
}

// StartMasking returns the masking of a new request.
func (r *Redactor) StartMasking() *Masking { return &Masking{redactor: r} }

// MaskText replaces all values by placeholders such as [EMAIL_1]. A value has
// the same placeholder in all texts of the request.
func (m *Masking) MaskText(text string) string { return m.maskExcept(text, 0) }

// maskExcept does not mask the kinds in show.
func (m *Masking) maskExcept(text string, show kindSet) string {
	found := findValues(text, m.redactor.kinds)
	if len(found) == 0 {
		return text
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replaceSpans(text, found, 0, show)
}

// replaceSpans masks the spans found in text[from:], and returns that part.
// m.mu is held.
func (m *Masking) replaceSpans(text string, found []span, from int, show kindSet) string {
	var b strings.Builder
	at := from
	put := func(f span) {
		b.WriteString(text[at:f.start])
		b.WriteString(m.placeholderOf(maskedValue{f.row, text[f.start:f.end]}))
		at = f.end
	}
	for _, f := range found {
		switch {
		case f.start < from, f.start == f.end: // in the context before the text, or empty
		case show.has(f.row) || m.redactor.allowed(f.row, text[f.start:f.end]):
			// Keep the value, but mask what looks like a placeholder in it.
			for _, l := range findPlaceholders(text[f.start:f.end], nil) {
				put(span{f.start + l.start, f.start + l.end, literalRow})
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

// placeholderOf returns the placeholder of the value, a new one if it has none.
// m.mu is held.
func (m *Masking) placeholderOf(v maskedValue) string {
	if p, ok := m.placeholders[v]; ok {
		return p
	}
	if m.placeholders == nil {
		m.placeholders, m.values = map[maskedValue]string{}, map[string]restorable{}
	}
	m.counts[v.row]++
	p := formatPlaceholder(v.row, int(m.counts[v.row]))
	v.text = strings.Clone(v.text) // do not keep a larger text alive
	m.placeholders[v], m.values[p] = p, restorable{maskedValue: v, masked: v.text}
	if v.row != literalRow {
		if shown := m.replaceSpans(v.text, findPlaceholders(v.text, nil), 0, 0); shown != v.text {
			m.values[p] = restorable{maskedValue: v, masked: shown}
		}
	}
	return p
}

// KindsOfInputs returns the kinds of data in the inputs of the request, sorted and not
// nil. It masks nothing, and does not affect Kinds.
func (m *Masking) KindsOfInputs(inputs map[string]json.RawMessage) []string {
	found := m.redactor.StartMasking()
	for name, value := range inputs {
		found.MaskMember(name, value, contract.DataClasses{contract.NoClasses})
	}
	return found.Kinds()
}

// Kinds returns the kinds found so far, sorted and not nil.
func (m *Masking) Kinds() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := []string{}
	for row, n := range m.counts[:literalRow] {
		if n > 0 {
			found = append(found, detectors[row].name)
		}
	}
	slices.Sort(found)
	return found
}

// parseRestore returns the kinds to restore, and whether everything is
// restored. Text that looked like a placeholder is restored only with
// everything, because otherwise it could be confused with remaining
// placeholders.
func parseRestore(want contract.DataClasses) (set kindSet, everything bool) {
	if want == nil || slices.Contains(want, contract.AllClasses) {
		return allKinds | 1<<literalRow, true
	}
	for _, name := range want {
		if row := detectorRow(name); row >= 0 {
			set |= 1 << row
		}
	}
	return set, false
}

// RestoreText replaces placeholders by their values, if their kind is wanted:
// nil and "all" mean every kind, "none" no kind. Unknown placeholders stay.
func (m *Masking) RestoreText(text string, want contract.DataClasses) string {
	set, everything := parseRestore(want)
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
					b.WriteString(v.masked)
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
