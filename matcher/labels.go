package matcher

import "github.com/caprouter/caprouter/contract"

// The first ids of a vocabulary. No agent has noLabel, so undeclared names have empty
// posting lists and need no check. The other two are domains: broadDomains replaces,
// in pairs, the domains of an agent that declares too many of them (see pairTable).
const (
	noLabel int32 = iota
	anyDomain
	broadDomains
	firstLabel
)

// vocabulary numbers the intents or the domains while the index is built. They are
// separate vocabularies, because a name may be both.
type vocabulary struct {
	ids     map[string]int32
	lastRow []int // by id: the last row that contains it, counted from 1
}

func newVocabulary() *vocabulary {
	return &vocabulary{ids: map[string]int32{}, lastRow: make([]int, firstLabel)}
}

func (v *vocabulary) len() int { return len(v.lastRow) }

// addRow appends a row with the ids of names to t, each once.
func (v *vocabulary) addRow(t *packedRows, names []string) {
	row := t.rowCount() + 1
	for _, name := range names {
		if name == contract.Unknown {
			continue // matches nothing, even if it is declared
		}
		id, ok := v.ids[name]
		if !ok {
			id = int32(len(v.lastRow))
			v.ids[name] = id
			v.lastRow = append(v.lastRow, 0)
		}
		if v.lastRow[id] != row {
			v.lastRow[id] = row
			t.items = append(t.items, id)
		}
	}
	t.endRow()
}
