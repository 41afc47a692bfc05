package golden

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// benchRegistry is a registry built from labelled rows: one agent per domain,
// with the intents of its rows and their texts as examples. Labels that are not
// valid names are mapped to valid ones.
type benchRegistry struct {
	snapshot *capabilities.Catalogue
	examples int
	intents  *nameTable // label → intent
	domains  *nameTable // label → domain
	agents   *nameTable // domain label → agent id
	// domainsOf contains the domain of every intent that has exactly one.
	domainsOf map[string][]string
}

// Limits of package capabilities.
const (
	maxNameRunes    = 64
	maxExampleRunes = 2000
)

func newBenchRegistry(rows []labelledRow) (*benchRegistry, error) {
	b := &benchRegistry{intents: newNameTable(labelName), domains: newNameTable(labelName), agents: newNameTable(agentName)}
	byID := map[string]*contract.RegistryEntry{}
	for i := range rows {
		row := &rows[i]
		if row.isOutOfScope() {
			continue // no examples for out-of-scope rows
		}
		id := b.agents.assign(row.Domain)
		agent, ok := byID[id]
		if !ok {
			agent = &contract.RegistryEntry{
				ID: id, Examples: map[string][]string{},
				Match: contract.Match{Domains: []string{b.domains.assign(row.Domain)}},
			}
			byID[id] = agent
			b.addAgent(agent)
		}
		intent := b.intents.assign(row.Intent)
		if _, ok := agent.Examples[intent]; !ok {
			agent.Match.Intent = append(agent.Match.Intent, intent)
		}
		agent.Examples[intent] = append(agent.Examples[intent], truncateRunes(row.Text, maxExampleRunes))
		b.examples++
	}
	if b.examples == 0 {
		return nil, fmt.Errorf("no row is in scope: there is nothing to train on")
	}
	b.sortSnapshot()
	return b, nil
}

func (b *benchRegistry) addAgent(agent *contract.RegistryEntry) {
	if b.snapshot == nil {
		b.snapshot = &capabilities.Catalogue{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback()}
	}
	b.snapshot.Agents = append(b.snapshot.Agents, agent)
}

// sortSnapshot sorts the lists that a snapshot requires to be sorted.
func (b *benchRegistry) sortSnapshot() {
	s := b.snapshot
	slices.SortFunc(s.Agents, func(x, y *contract.RegistryEntry) int { return strings.Compare(x.ID, y.ID) })
	for _, a := range s.Agents {
		slices.Sort(a.Match.Intent)
	}
	b.domainsOf = map[string][]string{}
	for _, a := range s.Agents {
		for _, intent := range a.Match.Intent {
			if _, another := b.domainsOf[intent]; another {
				b.domainsOf[intent] = nil
			} else {
				b.domainsOf[intent] = a.Match.Domains
			}
		}
	}
	s.Learned = s.Agents
	s.Intents = b.intents.sortedNames()
	s.Domains = b.domains.sortedNames()
}

// nameTable maps each label to a unique valid name, the label itself if
// possible.
type nameTable struct {
	toName func(string) string // proposes a name
	byKey  map[string]string
	taken  map[string]bool
}

func newNameTable(of func(string) string) *nameTable {
	return &nameTable{toName: of, byKey: map[string]string{}, taken: map[string]bool{}}
}

// assign returns the name of the label, a new one if the label is new.
func (n *nameTable) assign(label string) string {
	if name, ok := n.byKey[label]; ok {
		return name
	}
	wanted := n.toName(label)
	name := wanted
	for i := 2; n.taken[name]; i++ {
		suffix := fmt.Sprintf("_%d", i)
		name = truncateRunes(wanted, maxNameRunes-len(suffix)) + suffix
	}
	n.byKey[label], n.taken[name] = name, true
	return name
}

// lookup returns the name of a label, if it has one.
func (n *nameTable) lookup(label string) (string, bool) {
	name, ok := n.byKey[label]
	return name, ok
}

// labelOf returns the label of a name.
func (n *nameTable) labelOf(name string) string {
	for label, have := range n.byKey {
		if have == name {
			return label
		}
	}
	return name
}

func (n *nameTable) sortedNames() []string {
	list := make([]string, 0, len(n.taken))
	for name := range n.taken {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// labelName converts a label to a valid intent or domain name.
func labelName(label string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(label, "_"))
	name = strings.TrimSpace(truncateRunes(strings.TrimSpace(name), maxNameRunes))
	switch {
	case name == "" || name == contract.AnyDomain:
		return "label"
	case strings.EqualFold(name, contract.Unknown):
		return name + "_label"
	}
	return name
}

// agentName converts a label to a valid agent id.
func agentName(label string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, strings.ToLower(label))
	if id == "" || id[0] < 'a' || id[0] > 'z' {
		id = "agent_" + id
	}
	return truncateRunes(id, maxNameRunes)
}

func truncateRunes(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}
