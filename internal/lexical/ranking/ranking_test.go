package ranking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/lexical/ranking"
)

var tools = []ranking.Document{
	{Name: "get_weather.byCity", Description: "Current conditions for a place"},
	{Name: "convertUnits", Description: "Converts a value from one unit to another"},
	{Name: "currency_exchange", Description: "Converts a value from one currency to another"},
	{Name: "triangle.area", Description: "The area of a shape with three sides, given their lengths"},
	{Name: "historical-event", Description: "The date of an event in history"},
	{Name: "查询路线", Description: "查询城市之间的路线"},
	{Name: "empty", Description: ""},
}

func TestRanker(t *testing.T) {
	r := ranking.New(tools)
	for text, want := range map[string]string{
		"what's the weather in this city":   "get_weather.byCity",
		"convert 3 miles to another unit":   "convertUnits",
		"how much are 100 euros in dollars": "currency_exchange", // by a hint
		"areas of triangles":                "triangle.area",
		"triangular things":                 "triangle.area",    // by its n-grams
		"when was the battle of Hastings":   "historical-event", // by a hint
		"去机场的路线":                            "查询路线",
		"an empty thing":                    "empty",
		"CurrencyExchange":                  "currency_exchange",
		"quanta chuva vai cair":             "get_weather.byCity", // by a synonym
	} {
		got := r.Rank(text)
		if len(got) == 0 || got[0].Name != want {
			t.Errorf("%q: got %v, want %s first", text, got, want)
		}
	}
	if got := r.Rank("xyzzy"); len(got) != 0 {
		t.Errorf("got %v for a query that matches no tool, want none", got)
	}
	if got := ranking.New(nil).Rank("anything"); len(got) != 0 {
		t.Errorf("got %v of no tools, want none", got)
	}
}

// TestRanker_Order checks that scores are sorted and independent of the order of the documents.
func TestRanker_Order(t *testing.T) {
	word := rapid.SampledFrom([]string{"weather", "city", "unit", "convert", "the", "area", "天气", "when", "event", "x"})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, w := range rapid.SliceOfN(word, 0, 8).Draw(t, "text") {
			text.WriteString(w + " ")
		}
		want := ranking.New(tools).Rank(text.String())
		got := ranking.New(rapid.Permutation(tools).Draw(t, "tools")).Rank(text.String())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-in order +shuffled):\n%s", text.String(), diff)
		}
		if !slices.IsSortedFunc(want, func(a, b ranking.Result) int {
			if a.Score > b.Score {
				return -1
			}
			return 1
		}) && len(want) > 1 && want[0].Score < want[len(want)-1].Score {
			t.Errorf("%q: got %v, want falling scores", text.String(), want)
		}
	})
}
