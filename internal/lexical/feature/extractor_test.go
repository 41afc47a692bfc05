package feature

import (
	"slices"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/token"
)

func featuresOf(text string) Extractor {
	w := token.NewScanner()
	var f Extractor
	f.Extract(&w, text)
	return f
}

// TestFeatureExtractor checks the number of features of a text, and the number that two texts
// share.
func TestFeatureExtractor(t *testing.T) {
	tests := []struct {
		text         string
		words, grams int
	}{
		{"", 0, 0},
		{"a", 2, 1},            // word, stem; " a "
		{"at", 2, 3},           // " at", "at ", " at "
		{"plan b", 5, 8},       // and the pair of stems; of plan 4 trigrams, 3 of four
		{"é", 2, 1},            // folded
		{"код", 2, 5},          // letters, not bytes
		{"天气", 2, 2},           // a pair and its two characters
		{"天地人", 5, 4},          // two pairs, a run of three
		{"[EMAIL_1] at", 2, 3}, // a placeholder has no features
	}
	for _, tt := range tests {
		f := featuresOf(tt.text)
		if len(f.Words) != tt.words || len(f.Ngrams) != tt.grams {
			t.Errorf("%q: got %d words and %d n-grams, want %d and %d", tt.text, len(f.Words), len(f.Ngrams), tt.words, tt.grams)
		}
	}
}

func TestFeatureExtractor_RelatedWordsShareFeatures(t *testing.T) {
	tests := []struct {
		a, b         string
		words, grams int
	}{
		{"Review", "review", 2, 11},
		{"revisão", "REVISAO", 2, 13},
		{"reviews", "reviewing", 1, 9},        // the stem
		{"code review", "review code", 4, 18}, // words and stems, but not the pair
		{"天气", "气天", 0, 2},
		{"review", "cost", 0, 0},
		{"ab", "ba", 0, 0},
	}
	for _, tt := range tests {
		a, b := featuresOf(tt.a), featuresOf(tt.b)
		if words, grams := common(a.Words, b.Words), common(a.Ngrams, b.Ngrams); words != tt.words || grams != tt.grams {
			t.Errorf("%q and %q: got %d words and %d n-grams in common, want %d and %d", tt.a, tt.b, words, grams, tt.words, tt.grams)
		}
	}
}

func common(a, b []uint32) int {
	n := 0
	for _, h := range a {
		if slices.Contains(b, h) {
			n++
		}
	}
	return n
}
