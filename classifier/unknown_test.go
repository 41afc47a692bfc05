package classifier_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// TestSplit_UnknownRequests checks which clauses are listed as parts without an agent, next to a
// recognized one.
func TestSplit_UnknownRequests(t *testing.T) {
	tests := []struct {
		prompt string
		want   string // title of the unknown part; "" = none
	}{
		{"Review my pull request and book me a flight to Paris", "book me a flight to Paris"},
		{"Review my pull request. Order a pizza!", "Order a pizza!"},
		{"Tell me a joke about cats and review my pull request", "Tell me a joke about cats"},
		{"Review my pull request and what is the weather in Berlin", "what is the weather in Berlin"},
		{"Review my pull request, then tell a joke about cats", "tell a joke about cats"},
		{"Review my pull request; what is the weather in Berlin?", "what is the weather in Berlin?"},
		{"Book a flight to Paris. Order a pizza. Review my pull request.", "Book a flight to Paris; Order a pizza"},
		{"Where is parcel 5512 and review my pull request", "Where is parcel 5512"},
		{"¿Dónde está el paquete 5512? Revisa mi pull request", "¿Dónde está el paquete 5512?"},
		{"Revise meu pull request e reserve um voo para Lisboa", "reserve um voo para Lisboa"},
		{"Revisa mi pull request y reserva un vuelo a Lima", "reserva un vuelo a Lima"},
		{"请审查代码，然后预订去巴黎的机票", "预订去巴黎的机票"},
		{"I need a code review of my pull request. I would like a taxi to the airport", "I would like a taxi to the airport"},

		{"Hello there! Review my pull request and thank you very much.", ""},
		{"Good morning team. Review my pull request. Best regards, Ana", ""},
		{"Bom dia! Revise meu pull request, por favor. Abraços", ""},
		{"I have been waiting for three weeks. Review my pull request.", ""},
		{"My laptop broke yesterday. Review my pull request.", ""},
		{"Revise meu pull request. Já devia estar pronto", ""},
		{"Revisa mi pull request. Llevo tres semanas esperando", ""},
		{"Revise meu pull request. Não recebi resposta ontem", ""},
		{"Revisa mi pull request. No ha llegado nada todavía", ""},
		{"Review my pull request. Still waiting since yesterday", ""},
		{"Review my pull request?\n\nJoana Prado", ""},
		{"Review my pull request and the pros and cons of it", ""},
		{"Review my pull request and list the worst problems first", ""},
		{"Revise meu pull request e liste os problemas por ordem", ""},
		{"Revisa mi pull request y señala lo peor primero", ""},
		{"请审查代码，并按重要程度列出问题", ""},
		{"Review my pull request: the tests and their names", ""},
		{"Review my pull request 5512 and commit 77 too", ""},
		{"Review my pull request. Remove spaces. Sort imports. Delete logs. Rename files.", ""}, // not a request
		{"Book a flight to Paris and order a pizza", ""},                                        // no recognized part
		{"Review my pull request\n```\nbook.flight(); order.pizza()\n```", ""},
	}
	for _, tt := range tests {
		t.Run(tt.prompt, func(t *testing.T) {
			clf := newClassifier(t).Classify(t.Context(), input(exampleRegistry(), tt.prompt))
			got := ""
			for _, sub := range clf.Subtasks {
				if sub.Intent == contract.Unknown {
					got = sub.Title
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("unknown part (-want +got):\n%s\n%s", diff, render(&clf))
			}
			if tt.want != "" && (clf.Intent != "code_review" || clf.Confidence != clf.Subtasks[0].Confidence && clf.Subtasks[0].Intent != contract.Unknown) {
				t.Errorf("got %s, want code_review with the confidence of its part", render(&clf))
			}
		})
	}
}

// TestSplit_TitlesAreOwnSegments checks that the title of each part contains no text of another
// part.
func TestSplit_TitlesAreOwnSegments(t *testing.T) {
	nine, err := capabilities.Load("../golden/testdata/nine/examples-50.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, prompt string
		want         []string
	}{
		{"unknown second", "Cancel my order and book me a flight to Paris", []string{"cancel_order: Cancel my order", "unknown: book me a flight to Paris"}},
		{"unknown first", "Book me a flight to Paris and then cancel my order", []string{"cancel_order: cancel my order", "unknown: Book me a flight to Paris"}},
		{"unknown in the middle", "Cancel my order. Book me a flight to Paris. I do not want the order anymore", []string{
			"cancel_order: Cancel my order; I do not want the order anymore", "unknown: Book me a flight to Paris",
		}},
		{"uncertain part", "cancel my order, then why is the pipeline slow today", []string{"cancel_order: cancel my order", "pipeline_failure: why is the pipeline slow today"}},
		{"uncertain item of a list", "Track my order and check whether my boss approved the days off", []string{
			"track_order: Track my order", "request_leave: check whether my boss approved the days off",
		}},
		{"rejected intent", "Delete my personal data and I want my money back from last week", []string{
			"delete_personal_data: Delete my personal data", "unknown: I want my money back from last week",
		}},
		{"whole prompt of another intent", "do you still have the oak bookshelf in the 180 cm size? Could legal take a look at the NDA the new logistics supplier sent us?", []string{
			"contract_review: Could legal take a look at the NDA the new logistics supplier sent us?", "unknown: do you still have the oak bookshelf in the 180 cm size?",
		}},
		{"no second request", "Cancel my order. My laptop is dead.", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clf := newClassifier(t).Classify(t.Context(), input(nine.Catalogue, tt.prompt))
			var got []string
			for _, sub := range clf.Subtasks {
				got = append(got, sub.Intent+": "+sub.Title)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q: subtasks (-want +got):\n%s", tt.prompt, diff)
			}
		})
	}
}
