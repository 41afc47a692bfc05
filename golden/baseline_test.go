package golden

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCompareReports_Interrupted(t *testing.T) {
	before := &Report{Cases: []CaseResult{{ID: "a", Passed: true}, {ID: "b", Passed: true}}}
	now := &Report{Interrupted: true, Cases: before.Cases[:1]}
	if c := CompareReports(before, now); len(c.Gone) > 0 {
		t.Errorf("got %q gone, want none, because they were not run", c.Gone)
	}
}

func TestReadBaseline_Rejects(t *testing.T) {
	one := CaseResult{ID: "a", Passed: true}
	tests := []struct {
		name   string
		report Report
		want   string
	}{
		{"a part", Report{Interrupted: true, Summary: Summary{Planned: 2, Total: 1}, Cases: []CaseResult{one}}, "an interrupted run, 1 of 2 cases"},
		{"nothing", Report{}, "a report without cases"},
		{"duplicate id", Report{Cases: []CaseResult{one, one}}, `the case "a" occurs twice`},
		{"valid", Report{Cases: []CaseResult{one}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.report.Version = reportVersion
			dir := writeFiles(t, map[string]string{"b.json": string(encodeReport(t, &tt.report))})
			r, err := ReadBaseline(filepath.Join(dir, "b.json"))
			switch {
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want an error with %q", err, tt.want)
			case tt.want == "" && (err != nil || !r.HasAny([]Case{{ID: "x"}, {ID: "a"}}) || r.HasAny([]Case{{ID: "x"}})):
				t.Errorf("got %v, error %v; want the report, with case a and without x", r, err)
			}
		})
	}
}

func TestClassifier_String(t *testing.T) {
	for want, c := range map[string]Classifier{
		"lexical":                            {Mode: "lexical"},
		"llm, fake fake-1, prompts router/1": {Mode: "llm", Provider: "fake", Model: "fake-1", PromptVersion: "router/1"},
	} {
		if got := c.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
