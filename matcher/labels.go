package matcher

import "github.com/caprouter/caprouter/contract"

// The first ids of a vocabulary. No agent has noLabel, so a name that nobody
// declares needs no check: its lists are empty. The other two are domains;
// broad is no name, it stands in a pair for all the domains of an agent that
// declares too many (see pairs).
const (
	noLabel int32 = iota
	anyDomain
	broadDomains
	firstLabel
)

// vocabulary numbers the names of one kind while the index is built. Intents
// and domains are two vocabularies: one name may be both.
type vocabulary struct {
	ids     map[string]int32
	lastRow []int // by id: the row it was added to last, counted from 1
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
			continue // matches nothing, also where it is declared
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
