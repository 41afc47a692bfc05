package goldenreport

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/golden"
)

func TestPrintBench_ExplainsMissingThreshold(t *testing.T) {
	yes, no, some, none := true, false, 0.9, 0.0
	tests := []struct {
		name   string
		report golden.BenchReport
		want   string
	}{
		{"too few examples", golden.BenchReport{Calibrated: &no, Coverage: &none}, "none too few examples"},
		{"confidence too low", golden.BenchReport{Calibrated: &yes, Coverage: &none, AcceptSource: golden.AcceptFromTraining}, "none not sure enough"},
		{"a threshold", golden.BenchReport{Calibrated: &yes, Coverage: &some, Accept: &some, AcceptSource: golden.AcceptFromTraining}, "chosen from: training"},
		{"threshold above all rows", golden.BenchReport{Calibrated: &yes, Coverage: &none, Accept: &some}, "none no row reaches it"},
		{"tools", golden.BenchReport{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := PrintBench(&out, &tt.report); err != nil {
				t.Fatal(err)
			}
			text := regexp.MustCompile(" {2,}").ReplaceAllString(out.String(), " ")
			if !strings.Contains(text, tt.want) || tt.want == "" && strings.Contains(text, "accept") {
				t.Errorf("got %s, want %q", out.String(), tt.want)
			}
		})
	}
}
