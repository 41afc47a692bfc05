package fallback_test

import (
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/lexical"
)

// registry declares three agents with examples.
func registry() *capabilities.Catalogue {
	return snapshot(
		&contract.RegistryEntry{
			ID: "billing_agent", Match: contract.Match{Intent: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"}},
			Examples: map[string][]string{"cost_analysis": {"why did our cloud bill go up"}},
		},
		&contract.RegistryEntry{
			ID:       "quality_agent",
			Match:    contract.Match{Intent: []string{"code_review", "databricks_review", "serverless_review"}, Domains: []string{"python", "databricks", "semaforo"}},
			Examples: map[string][]string{"code_review": {"review my pull request", "check this function for bugs"}}, Constraints: contract.Constraints{MaxTokens: 8000},
		},
		&contract.RegistryEntry{
			ID: "rag_agent", Match: contract.Match{Intent: []string{"retrieval_qa", "doc_answering"}, Domains: []string{"kb_internal", "docs"}},
			Examples: map[string][]string{"doc_answering": {"what do the docs say about retries"}, "retrieval_qa": {"find our vacation policy"}},
		},
	)
}

func snapshot(agents ...*contract.RegistryEntry) *capabilities.Catalogue {
	s := &capabilities.Catalogue{Agents: agents, Learned: agents, Routing: capabilities.DefaultRouting()}
	for _, a := range agents {
		s.Intents = append(s.Intents, a.Match.Intent...)
		s.Domains = append(s.Domains, a.Match.Domains...)
	}
	for _, list := range []*[]string{&s.Intents, &s.Domains} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(name string) bool { return name == contract.AnyDomain })
	}
	return s
}

var local = &contract.Caller{Subject: "local", AllScopes: true}

func callerOf(agents ...string) *contract.Caller {
	c := &contract.Caller{Subject: "ana"}
	for _, a := range agents {
		c.Scopes = append(c.Scopes, "agent:"+a)
	}
	return c
}

func unmet(s *capabilities.Catalogue, caller *contract.Caller, prompt, reason string, clf contract.Classification, near ...contract.Candidate) *fallback.Unmet {
	if clf.Source == "" {
		clf.Source = contract.SourceLexical
	}
	return &fallback.Unmet{
		Catalogue: s, Lexical: lexical.Train(classifier.BuildCorpus(s)), Caller: caller, Prompt: prompt, Reason: reason,
		Decision: &contract.Decision{Classification: clf, Candidates: near},
	}
}

// nearMiss returns a candidate with these parts of the score.
func nearMiss(agent string, intent, domains, constraints float64, matched string, gates ...contract.Gate) contract.Candidate {
	return contract.Candidate{
		AgentID: agent, Score: intent + domains + constraints, Gates: gates,
		Parts:          contract.ScoreParts{Intent: intent, Domains: domains, Constraints: constraints},
		MatchedDomains: strings.Fields(matched),
	}
}
