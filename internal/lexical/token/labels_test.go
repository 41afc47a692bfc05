package token

import (
	"strings"
	"testing"
)

// TestScanner_Labels checks which words belong to a label.
func TestScanner_Labels(t *testing.T) {
	labels := NewLabels()
	for i, name := range []string{"code_review", "costAnalysis", "translate", "spark_job", "CodeReview"} {
		labels.Add(NormalizeLabel(name), int32(i))
	}
	tests := []struct{ text, want string }{
		{"code_review now", "[code] [review] now"},
		{"a CODE_REVIEW_v2, codeReview", "a [code] [review] [v2] [codereview]"},
		{"code review and code-review", "code review and code review"},
		{"cost_analysis", "[cost] [analysis]"},
		{"translate", "translate"}, // a single word
		{"review_code", "review code"},
		{"spark_job", "spark job"}, // removed below
	}
	w := NewScanner()
	w.Labels = labels
	w.Reset("spark_job")
	w.Next()
	labels.Remove(w.Label)
	for _, tt := range tests {
		var got []string
		for w.Reset(tt.text); w.Next(); {
			word := string(w.Word)
			if w.Label != nil {
				word = "[" + word + "]"
			}
			got = append(got, word)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
	w.Reset("code_review")
	if w.Next(); w.Label == nil || len(w.Label.Owners) != 2 {
		t.Errorf("got %+v, want a label of two owners", w.Label)
	}
}
