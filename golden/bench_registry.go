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

// benchRegistry is the registry a labelled set makes: one agent for each domain,
// with the intents of its rows and their texts as examples. Labels that a
// registry does not take as they are get a name that it takes.
type benchRegistry struct {
	snapshot *capabilities.Catalogue
	examples int
	intents  *labelNames // label → intent
	domains  *labelNames // label → domain
	agents   *labelNames // domain label → agent id
	// domainsOf has the domain of every intent that has one only.
	domainsOf map[string][]string
}

// Bounds of a registry's values, as package capabilities checks them.
const (
	maxNameRunes    = 64
	maxExampleRunes = 2000
)

func newBenchRegistry(rows []utterance) (*benchRegistry, error) {
	b := &benchRegistry{intents: newLabelNames(labelName), domains: newLabelNames(labelName), agents: newLabelNames(agentName)}
	byID := map[string]*contract.RegistryEntry{}
	for i := range rows {
		row := &rows[i]
		if row.outOfScope() {
			continue // a registry has no examples of what it does not do
		}
		id := b.agents.of(row.Domain)
		agent, ok := byID[id]
		if !ok {
			agent = &contract.RegistryEntry{
				ID: id, Examples: map[string][]string{},
				Match: contract.Match{Domains: []string{b.domains.of(row.Domain)}},
			}
			byID[id] = agent
			b.add(agent)
		}
		intent := b.intents.of(row.Intent)
		if _, ok := agent.Examples[intent]; !ok {
			agent.Match.Intent = append(agent.Match.Intent, intent)
		}
		agent.Examples[intent] = append(agent.Examples[intent], cutRunes(row.Text, maxExampleRunes))
		b.examples++
	}
	if b.examples == 0 {
		return nil, fmt.Errorf("no row is in scope: there is nothing to train on")
	}
	b.finish()
	return b, nil
}

func (b *benchRegistry) add(agent *contract.RegistryEntry) {
	if b.snapshot == nil {
		b.snapshot = &capabilities.Catalogue{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback()}
	}
	b.snapshot.Agents = append(b.snapshot.Agents, agent)
}

// finish puts what a snapshot promises to be sorted in order.
func (b *benchRegistry) finish() {
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
	s.Intents = b.intents.all()
	s.Domains = b.domains.all()
}

// labelNames gives every label a name of its own, the label itself where it is one.
type labelNames struct {
	wish  func(string) string // the name a label would like
	byKey map[string]string
	taken map[string]bool
}

func newLabelNames(of func(string) string) *labelNames {
	return &labelNames{wish: of, byKey: map[string]string{}, taken: map[string]bool{}}
}

// of returns the name of the label, a new one if the label is new.
func (n *labelNames) of(label string) string {
	if name, ok := n.byKey[label]; ok {
		return name
	}
	wanted := n.wish(label)
	name := wanted
	for i := 2; n.taken[name]; i++ {
		suffix := fmt.Sprintf("_%d", i)
		name = cutRunes(wanted, maxNameRunes-len(suffix)) + suffix
	}
	n.byKey[label], n.taken[name] = name, true
	return name
}

// known returns the name a label has, if it has one.
func (n *labelNames) known(label string) (string, bool) {
	name, ok := n.byKey[label]
	return name, ok
}

// label returns the label as it was given, of a name.
func (n *labelNames) label(name string) string {
	for label, have := range n.byKey {
		if have == name {
			return label
		}
	}
	return name
}

func (n *labelNames) all() []string {
	list := make([]string, 0, len(n.taken))
	for name := range n.taken {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// labelName makes a label a valid name of an intent or a domain.
func labelName(label string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '_'
	}, strings.ToValidUTF8(label, "_"))
	name = strings.TrimSpace(cutRunes(strings.TrimSpace(name), maxNameRunes))
	switch {
	case name == "" || name == contract.AnyDomain:
		return "label"
	case strings.EqualFold(name, contract.Unknown):
		return name + "_label"
	}
	return name
}

// agentName makes a label a valid agent id.
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
	return cutRunes(id, maxNameRunes)
}

func cutRunes(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}
