package strictjson

import (
	"encoding/json"

	"github.com/caprouter/caprouter/contract"
)

// claims is an object with a foreign format, which may have unknown members.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience any      `json:"aud"`
	Expires  int64    `json:"exp"`
	Domains  []string `json:"domains"`
	Act      *claims  `json:"act"`
}

func fullResponse() *contract.Response {
	return &contract.Response{
		RequestID: "r", TraceID: "t", Status: contract.StatusCompleted,
		Decision: &contract.Decision{
			DecisionID: "d",
			Classification: contract.Classification{
				Intent: "code_review", Domains: []string{"python"}, Confidence: 0.9, Source: contract.SourceLexical,
			},
			Candidates: []contract.Candidate{{
				AgentID: "quality_agent", Score: 0.8, Parts: contract.ScoreParts{Intent: 0.5, Domains: 0.3},
				MatchedDomains: []string{"python"}, Eligible: true, Role: contract.RoleChosen,
			}},
			CandidatesTotal: 1, Chosen: []string{"quality_agent"}, RegistryVersion: "sha256:0",
			TimingsMS: map[string]float64{"match": 0.01, "classify": 0.2},
		},
		Data: contract.ResponseData{
			Mode: contract.DataDispatch,
			Results: []contract.AgentResult{{
				AgentID: "quality_agent", Status: contract.TaskSuccess,
				Data: map[string]json.RawMessage{"answer": json.RawMessage(`"two findings <1> & <2>"`)},
			}},
			Answer: "two findings",
		},
	}
}
