package lexical_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/lexical"
)

// numeralCorpus has examples with numerals, and names that differ in a numeral.
func numeralCorpus() lexical.Corpus {
	return lexical.Corpus{Intents: []lexical.IntentDoc{
		{Name: "locate_vehicle", Agents: []string{"fleet"}, Examples: []string{"where is truck 44", "position of van 12", "find trailer 7", "has truck 31 arrived"}},
		{Name: "change_tyres", Agents: []string{"workshop"}, Examples: []string{"new tyres for truck 8", "van 60 has a flat tyre", "winter tyres for the fleet"}},
		{Name: "send_invoice", Agents: []string{"billing"}, Examples: []string{"a copy of bill 48821", "resend the bill for June", "invoice 99120 again, please"}},
		{Name: "support_tier_1", Agents: []string{"helpdesk"}, Examples: []string{"open a ticket at tier 1", "first contact with support"}},
		{Name: "support_tier_2", Agents: []string{"engineers"}, Examples: []string{"hand it over to tier 2", "an engineer should look at it"}},
	}}
}

// Numerals are equivalent if the registry declares none of them.
func TestClassify_IgnoresValueOfNumerals(t *testing.T) {
	m := lexical.Train(numeralCorpus())
	for _, request := range []string{"locate truck %s", "where is van %s now?", "tyre change for truck %s", "send me invoice %s", "container TCLU%s?"} {
		rapid.Check(t, func(t *rapid.T) {
			unseen := rapid.StringMatching(`[3-9][0-9]{3,9}`).Filter(func(s string) bool { return s != "48821" && s != "99120" })
			a, b := unseen.Draw(t, "a"), unseen.Draw(t, "b")
			if diff := cmp.Diff(m.Classify(fmt.Sprintf(request, a)), m.Classify(fmt.Sprintf(request, b))); diff != "" {
				t.Errorf("prediction of %q and %q (-want +got):\n%s", fmt.Sprintf(request, b), fmt.Sprintf(request, a), diff)
			}
		})
	}
}

// A request with another numeral than the example is classified like the example.
func TestClassify_Numerals(t *testing.T) {
	m := lexical.Train(numeralCorpus())
	for _, tt := range []struct{ text, intent string }{
		{"where is truck 9", "locate_vehicle"},
		{"position of truck 5120", "locate_vehicle"},
		{"new tyres for van 17", "change_tyres"},
		{"invoice 99127 again", "send_invoice"},
		{"support tier 1", "support_tier_1"},
		{"support tier 2", "support_tier_2"},
		{"a ticket at tier 1", "support_tier_1"},
		{"please hand over to tier 2", "support_tier_2"},
	} {
		if p := m.Classify(tt.text); p.Intent != tt.intent || p.Confidence < lexical.MinActionConfidence {
			t.Errorf("%q: got %s (%s) with %v, want %s", tt.text, p.Intent, p.BestIntent, p.Confidence, tt.intent)
		}
	}
}

func TestExplain_ListsNoNumeralAsUnknown(t *testing.T) {
	m := lexical.Train(numeralCorpus())
	if got, want := m.Explain("where is the forklift 5512").Unknown, []string{"forklift"}; !slices.Equal(got, want) {
		t.Errorf("got unknown words %q, want %q", got, want)
	}
}
