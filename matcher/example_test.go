package matcher_test

import (
	"fmt"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

func Example() {
	agents := []*contract.RegistryEntry{
		{ID: "quality_agent", Match: contract.Match{
			Intent:  []string{"code_review", "databricks_review"},
			Domains: []string{"python", "databricks"},
		}, Constraints: contract.Constraints{MaxTokens: 8000}},
		{ID: "python_agent", Match: contract.Match{
			Intent:  []string{"code_review"},
			Domains: []string{"python"},
		}, Requires: contract.Requires{Scopes: []string{"repo:read"}}},
		{ID: "billing_agent", Match: contract.Match{
			Intent:  []string{"cost_analysis"},
			Domains: []string{"azure", "databricks"},
		}},
	}
	index := matcher.Build(agents, matcher.DefaultWeights(), 65)

	query := matcher.Query{
		Intent: "code_review", Domains: []string{"python"}, PromptBytes: 1200,
		Caller:     &contract.Caller{AllAgents: true},
		Confidence: 0.93, MinConfidence: 0.65,
	}
	var result matcher.Result
	index.Match(&query, nil, &result)

	for i := range result.Best() {
		c := index.Describe(&result.Candidates[i], &query, nil)
		fmt.Println(c.AgentID, c.Score, c.Parts, c.MatchedDomains, c.Gates)
	}
	fmt.Println(index.TieBreak(&result.Candidates[0], &result.Candidates[1]).Reason)
	// Output:
	// python_agent 0.8 {0.5 0.3 0} [python] [{scopes needs scope repo:read}]
	// quality_agent 0.8 {0.5 0.3 0} [python] []
	// both score 0.80: python_agent declares 2 intents and domains, quality_agent declares 4
}
