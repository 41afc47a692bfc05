package classifier_test

import (
	"slices"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

const airline = `
clients:
  crew:
    match: { intent: [crew_planning, shift_swap], domains: [crew] }
    examples:
      crew_planning: ["plan the crew for the flight to Lisbon", "which crew flies on Monday", "assign cabin attendants to the charter",
        "pilots for the night flight", "can you plan cabin crew for the Sunday charter", "staff the early flight"]
      shift_swap: ["swap my shift with a colleague", "can someone take my night shift", "change my duty on Friday"]
  parts:
    match: { intent: [order_spare_part, part_stock], domains: [parts] }
    examples:
      order_spare_part: ["order a spare part for the landing gear", "we need a new brake disc", "buy ten filters for the engine"]
      part_stock: ["how many tyres are in stock", "is the fuel pump available", "stock of seat belts"]
  docs:
    match: { intent: [manual_search, incident_report], domains: [manuals] }
    examples:
      manual_search: ["where in the manual is the torque of the bolt", "find the procedure for de-icing", "what does the handbook say about tyres"]
      incident_report: ["report a bird strike", "the cabin lost pressure over Madrid", "a passenger fell ill on board"]
`

func airlineInput(t *testing.T, prompt string) *classifier.Input {
	t.Helper()
	s, err := capabilities.Parse("airline.yaml", []byte(airline))
	if err != nil {
		t.Fatal(err)
	}
	return &classifier.Input{Prompt: prompt, Catalogue: s.Catalogue, Lexical: lexical.Train(classifier.BuildCorpus(s.Catalogue))}
}

// If no text of the registry shares a word with the request for its intent, the evidence names the
// words with which the model has decided, and not only the evidence for another intent.
func TestListEvidence_NamesLearnedWords(t *testing.T) {
	in := airlineInput(t, "Can you arrange people for twelve passengers")
	clf := classifier.ClassifyLexically(in)
	if clf.Intent != "crew_planning" {
		t.Fatalf("got %+v, want crew_planning", clf)
	}
	var learned []string
	total, other := 0.0, false
	for _, e := range classifier.ListEvidence(in, &clf) {
		if e.Intent != clf.Intent {
			other = true
			continue
		}
		if e.Kind != contract.EvidenceLearned || e.Missing == nil {
			t.Errorf("got %+v, want learned words of the request", e)
		}
		learned, total = append(learned, e.Text), total+e.Strength
	}
	if len(learned) == 0 || len(learned) > 3 || !slices.Contains(learned, "twelve") || total > 1 || !other {
		t.Errorf("got learned words %q with %.2f of the weights, other evidence %v; want twelve among them, and the evidence for another intent", learned, total, other)
	}
	in = airlineInput(t, "which crew flies to Porto")
	clf = classifier.ClassifyLexically(in)
	for _, e := range classifier.ListEvidence(in, &clf) {
		if e.Kind == contract.EvidenceLearned {
			t.Errorf("got %+v, want texts of the registry only", e)
		}
	}
}

// A confidence that reaches the default minimum, and is lower than what the registry requires, is
// shown with the latter.
func TestClassifyLexically_ShowsRequiredConfidence(t *testing.T) {
	for prompt, want := range map[string]bool{"find people": true, "which crew flies on Monday": false, "lunch for the team": false} {
		clf := classifier.ClassifyLexically(airlineInput(t, prompt))
		if got := clf.RequiredConfidence > 0; got != want {
			t.Errorf("%q: got %+v, want a required confidence: %v", prompt, clf, want)
		}
		if want && (clf.Intent != contract.Unknown || clf.Confidence < 0.5 || clf.RequiredConfidence <= clf.Confidence) {
			t.Errorf("%q: got %+v, want it unknown, with a confidence from 0.5 and below the required one", prompt, clf)
		}
	}
}
