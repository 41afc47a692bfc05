package golden

import (
	"slices"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestExplainDecision(t *testing.T) {
	example := []contract.Evidence{{Kind: contract.EvidenceExample, Text: "reserve the combine", Intent: "book_machine", Strength: 0.5}}
	short := contract.Candidate{AgentID: "vet", Gates: []contract.Gate{{Gate: "threshold", Reason: "score 0.50 is below the threshold 0.65"}, {Gate: "state", Reason: "it is away"}}}
	for _, tt := range []struct {
		name     string
		decision contract.Decision
		expect   Expect
		want     string
	}{
		{
			"another agent",
			contract.Decision{Classification: contract.Classification{Evidence: example}, Chosen: []string{"machines"}},
			Expect{Agents: []string{"machines", "vet"}},
			`example "reserve the combine" speaks for book_machine (0.50); vet is no candidate`,
		},
		{
			"excluded agent",
			contract.Decision{
				Classification: contract.Classification{Alternatives: []contract.IntentScore{{Intent: "vet_visit", Confidence: 0.2}}}, Candidates: []contract.Candidate{short},
			},
			Expect{},
			"no text of the registry speaks for an intent; vet_visit follows with 0.20; vet is excluded: score 0.50 is below the threshold 0.65 and it is away",
		},
		{
			"unknown",
			contract.Decision{Classification: contract.Classification{
				Intent: contract.Unknown, Evidence: example, Alternatives: []contract.IntentScore{{Intent: "vet_visit", Confidence: 0.2}},
			}},
			Expect{Agents: []string{"vet"}},
			`example "reserve the combine" speaks for book_machine (0.50); the nearest intent is vet_visit with 0.20; vet is no candidate`,
		},
		{
			"tied intents",
			contract.Decision{
				Classification: contract.Classification{
					Intent: "book_machine", Tied: true, TiedConfidence: 0.65, Evidence: example,
					Alternatives: []contract.IntentScore{{Intent: "repair_machine", Confidence: 0.3}, {Intent: "vet_visit", Confidence: 0.2}},
				},
				Chosen: []string{"machines"},
			},
			Expect{Agents: []string{"vet"}},
			`example "reserve the combine" speaks for book_machine (0.50); one agent serves several of the likeliest intents, so their confidences are added up to 0.65; vet is no candidate`,
		},
		{
			"stronger evidence for another intent",
			contract.Decision{
				Classification: contract.Classification{Intent: "vet_visit", Evidence: append(slices.Clone(example), contract.Evidence{
					Kind: contract.EvidenceLearned, Text: "calf", Intent: "vet_visit", Strength: 0.4,
				})},
				Chosen: []string{"vet"},
			},
			Expect{Agents: []string{"vet"}},
			`learned "calf" speaks for vet_visit (0.40)`,
		},
		{
			"more confidence required",
			contract.Decision{Classification: contract.Classification{
				Intent: contract.Unknown, RequiredConfidence: 0.58, Alternatives: []contract.IntentScore{{Intent: "vet_visit", Confidence: 0.51}},
			}},
			Expect{Agents: []string{"vet"}},
			"no text of the registry speaks for an intent; the nearest intent is vet_visit with 0.51, and this registry requires 0.58; vet is no candidate",
		},
		{
			"slightly more confidence required",
			contract.Decision{Classification: contract.Classification{
				Intent: contract.Unknown, RequiredConfidence: 0.5338, Alternatives: []contract.IntentScore{{Intent: "vet_visit", Confidence: 0.5299}},
			}},
			Expect{Agents: []string{"vet"}},
			"no text of the registry speaks for an intent; the nearest intent is vet_visit with 0.5299, and this registry requires 0.5338; vet is no candidate",
		},
		{
			"part without an intent",
			contract.Decision{
				Classification: contract.Classification{
					Intent: "book_machine", Evidence: example,
					Subtasks: []contract.Subtask{{Title: "reserve the combine", Intent: "book_machine"}, {Title: "call the vet", Intent: contract.Unknown}},
				},
				Chosen: []string{"machines"},
			},
			Expect{Agents: []string{"machines", "vet"}},
			`example "reserve the combine" speaks for book_machine (0.50); the part "call the vet" is not understood; vet is no candidate`,
		},
		{
			"a model",
			contract.Decision{
				Classification: contract.Classification{Source: contract.SourceLLM, Evidence: example}, Chosen: []string{"machines"},
				Candidates: []contract.Candidate{{AgentID: "machines"}, {AgentID: "vet", Score: 0.8}},
			},
			Expect{Agents: []string{"vet"}},
			"the model replied so; vet has the score 0.80 and is not chosen",
		},
		{
			"implied domain",
			contract.Decision{
				Classification: contract.Classification{
					Evidence: example, Domains: []string{"north"},
					DomainOrigins: []contract.DomainOrigin{{Domain: "north", Origin: contract.DomainImplied}},
				},
				Chosen: []string{"machines"},
			},
			Expect{Agents: []string{"machines"}, Domains: []string{"south"}},
			`example "reserve the combine" speaks for book_machine (0.50); north is implied, because the text has no name and no alias of a domain of the intent`,
		},
		{"no agent expected", contract.Decision{Classification: contract.Classification{Evidence: example}, Chosen: []string{"machines"}}, Expect{Agents: []string{}}, `example "reserve the combine" speaks for book_machine (0.50)`},
	} {
		if got := explainDecision(&tt.decision, &tt.expect); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}
