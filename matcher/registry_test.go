package matcher_test

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// sourceRegistry returns the registry of 003 §1.
func sourceRegistry() []*contract.RegistryEntry {
	quality := agent("quality_agent",
		[]string{"code_review", "databricks_review", "serverless_review"}, []string{"python", "databricks", "semaforo"})
	quality.Constraints.MaxTokens = 8000
	return []*contract.RegistryEntry{
		quality,
		agent("rag_agent", []string{"retrieval_qa", "doc_answering"}, []string{"kb_internal", "docs"}),
		agent("billing_agent", []string{"cost_analysis"}, []string{"azure", "databricks"}),
	}
}

func agent(id string, intents, domains []string) *contract.RegistryEntry {
	return &contract.RegistryEntry{ID: id, Match: contract.Match{Intent: intents, Domains: domains}}
}

// with returns the agent after the changes.
func with(a *contract.RegistryEntry, changes ...func(*contract.RegistryEntry)) *contract.RegistryEntry {
	for _, change := range changes {
		change(a)
	}
	return a
}

// reviewer returns an agent for reviewQuery: intent code_review, domain python.
func reviewer(id string, changes ...func(*contract.RegistryEntry)) *contract.RegistryEntry {
	return with(agent(id, []string{"code_review"}, []string{"python"}), changes...)
}

func reviewQuery(caller *contract.Caller) matcher.Query {
	return matcher.Query{Intent: "code_review", Domains: []string{"python"}, PromptBytes: 100, Caller: caller, Confidence: 0.9, MinConfidence: 0.65, NowMS: nowMS}
}

var everyone = &contract.Caller{Subject: "local", AllAgents: true, AllScopes: true}

func build(agents ...*contract.RegistryEntry) *matcher.Index {
	return matcher.Build(agents, matcher.DefaultWeights(), threshold)
}

// describe matches and renders all candidates.
func describe(x *matcher.Index, q *matcher.Query, live matcher.Live) []contract.Candidate {
	var res matcher.Result
	x.Match(q, live, &res)
	candidates := make([]contract.Candidate, 0, res.N)
	for i := range res.Best() {
		candidates = append(candidates, x.Describe(&res.Candidates[i], q, live))
	}
	return candidates
}

func ids(candidates []contract.Candidate) []string {
	list := make([]string, 0, len(candidates))
	for _, c := range candidates {
		list = append(list, c.AgentID)
	}
	return list
}
