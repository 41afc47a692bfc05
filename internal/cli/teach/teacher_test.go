package teach

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

// The order of the agents follows the candidates, then the confidence in their intents. A model
// that finds no intent gives no confidences, and the lexical classifier gives its own.
func TestTeacher_OrdersAgentsByConfidence(t *testing.T) {
	snapshot, err := capabilities.Parse("capabilities.yaml", []byte(`clients:
  a_agent: { match: { intent: [archive], domains: [files] } }
  b_agent: { match: { intent: [bill, budget], domains: [costs] }, examples: { budget: [how much may we spend, plan the budget of the year] } }
  c_agent: { match: { intent: [check], domains: [code] } }
`))
	if err != nil {
		t.Fatal(err)
	}
	scores := func(list ...any) (out []contract.IntentScore) {
		for i := 0; i < len(list); i += 2 {
			out = append(out, contract.IntentScore{Intent: list[i].(string), Confidence: list[i+1].(float64)})
		}
		return out
	}
	for _, tt := range []struct {
		name     string
		decision *contract.Decision
		want     string
	}{
		{"candidates first", &contract.Decision{
			Classification: contract.Classification{Intent: "check", Confidence: 0.6, Source: contract.SourceLexical, Alternatives: scores("budget", 0.3)},
			Candidates:     []contract.Candidate{{AgentID: "c_agent"}},
		}, "c_agent check 0.60; b_agent bill, budget 0.30; a_agent archive"},
		{"unknown", &contract.Decision{
			Classification: contract.Classification{Intent: contract.Unknown, Confidence: 0.4, Source: contract.SourceLexical, Alternatives: scores("check", 0.4, "bill", 0.2, "archive", 0.004)},
		}, "c_agent check 0.40; b_agent bill 0.20, budget; a_agent archive"},
		{"subtasks", &contract.Decision{Classification: contract.Classification{
			Intent: contract.Unknown, Source: contract.SourceLexical,
			Subtasks: []contract.Subtask{{Intent: "bill", Confidence: 0.9}, {Intent: "check", Confidence: 0.8}},
		}}, "b_agent bill 0.90, budget; c_agent check 0.80; a_agent archive"},
		{"nothing known", &contract.Decision{
			Classification: contract.Classification{Intent: contract.Unknown, Source: contract.SourceLexical},
		}, "a_agent archive; b_agent bill, budget; c_agent check"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			teach := Teacher{Config: Config{Lexical: func() *lexical.Model {
				t.Error("the lexical classifier was trained")
				return lexical.Train(lexical.Corpus{})
			}}}
			if got := listAgents(&teach, snapshot, tt.decision); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	trained := lexical.Train(classifier.BuildCorpus(snapshot.Catalogue))
	teach := Teacher{Config: Config{Lexical: func() *lexical.Model { return trained }}}
	unread := &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown, Source: contract.SourceLLM}}
	if got := listAgents(&teach, snapshot, unread); !strings.HasPrefix(got, "b_agent bill, budget 1.00; ") {
		t.Errorf("model without an intent: got %s, want b_agent with a confidence first", got)
	}
}

// listAgents returns the agents as teach lists them for a decision about a budget.
func listAgents(teach *Teacher, s *capabilities.Snapshot, d *contract.Decision) string {
	likely := teach.confidences(&Reading{Prompt: "how much may we spend?", Response: contract.Response{Decision: d}})
	var lines []string
	for _, a := range orderAgents(s, d, likely) {
		lines = append(lines, a.ID+" "+formatIntents(a.Match.Intent, likely))
	}
	return strings.Join(lines, "; ")
}
