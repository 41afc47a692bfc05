package classifier

import (
	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// BuildCorpus is what a registry says about its intents and domains, for training.
// An intent that several agents serve has the examples, keywords, descriptions
// and domains of all. Words that stand for no intent or for any domain ("*",
// unknown) are no labels; as a declared domain "*" stays, because an intent with
// it does not imply a domain.
func BuildCorpus(s *capabilities.Catalogue) lexical.Corpus {
	var c lexical.Corpus
	at := make(map[string]int, len(s.Intents))
	for _, agent := range s.Agents {
		for _, intent := range agent.Match.Intent {
			if reserved(intent) {
				continue
			}
			i, ok := at[intent]
			if !ok {
				i = len(c.Intents)
				at[intent] = i
				c.Intents = append(c.Intents, lexical.IntentDoc{Name: intent})
			}
			d := &c.Intents[i]
			d.Examples = append(d.Examples, agent.Examples[intent]...)
			d.Keywords = append(d.Keywords, agent.Keywords...)
			d.Agents = append(d.Agents, agent.ID)
			if agent.Description != "" {
				d.Descriptions = append(d.Descriptions, agent.Description)
			}
			d.NotFor = append(d.NotFor, agent.NotFor...)
			d.Domains = append(d.Domains, agent.Match.Domains...)
		}
	}
	for _, domain := range s.Domains {
		if !reserved(domain) {
			c.Domains = append(c.Domains, domain)
		}
	}
	return c
}

func reserved(label string) bool { return label == contract.AnyDomain || label == contract.Unknown }
