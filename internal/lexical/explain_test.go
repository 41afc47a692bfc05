package lexical

import (
	"slices"
	"testing"
)

func TestExplain(t *testing.T) {
	m := Train(trainedCorpus())
	e := m.Explain("could you settle this invoice before the zebra comes")
	if e.Intent != "pay_invoice" || e.Confidence <= 0 || e.Against == e.Intent {
		t.Errorf("got %+v, want pay_invoice against another", e)
	}
	if len(e.Features) == 0 || len(e.Features) > maxFeatures || e.Features[0].Weight <= 0 {
		t.Fatalf("got features %v, want some, the strongest for it", e.Features)
	}
	var texts []string
	for _, f := range e.Features {
		texts = append(texts, f.Text)
	}
	if !slices.Contains(texts, "invoice") || !slices.Contains(texts, "settle") {
		t.Errorf("got features %q, want invoice and settle among them", texts)
	}
	if !slices.Contains(e.Unknown, "zebra") || slices.Contains(e.Unknown, "invoice") {
		t.Errorf("got unknown words %q, want zebra, not invoice", e.Unknown)
	}
	if len(e.Examples) == 0 || len(e.Examples) > maxExamples {
		t.Errorf("got examples %q, want one to %d", e.Examples, maxExamples)
	}
}

// TestExplain_FewExamples checks that words shared with another intent have the least weight.
func TestExplain_FewExamples(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{
		{Name: "code_review", Examples: []string{"review my pull request"}}, {Name: "plan_review"},
	}})
	e := m.Explain("review this pull request")
	if e.Intent != "code_review" || e.Against != "plan_review" {
		t.Errorf("got %+v, want code_review against plan_review", e)
	}
	weights := map[string]float64{}
	for _, f := range e.Features {
		weights[f.Text] = f.Weight
	}
	if w := weights["review"]; w >= weights["pull"]/2 || w >= weights["request"]/2 {
		t.Errorf("got features %v, want pull and request, and a weaker review", e.Features)
	}
	if got := m.Explain(""); got.Intent != "" || len(got.Features) != 0 || len(got.Examples) != 0 {
		t.Errorf("got %+v of no text, want nothing", got)
	}
}
