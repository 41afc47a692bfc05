package goldentest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/golden"
)

const registry = "../testdata/registry.yaml"

func TestRun(t *testing.T) {
	Run(t, Options{Registry: registry, Cases: []string{"../testdata/chaos.yaml"}})
}

func TestRun_Filter(t *testing.T) {
	Run(t, Options{Registry: registry, Cases: []string{"../testdata/chaos.yaml"}, Filter: golden.Filter{Tags: []string{"divergent"}}})
}

func TestLoadConfig_Errors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", "cases:\n  - { id: a, input: review this, expect: { outcome: dispatch } }\n")
	bad := file("bad.yaml", "cases:\n  - { id: a, input: review this, expect: { agents: [nobody] } }\n")
	tests := []struct {
		name string
		opts Options
		want string
	}{
		{"no registry", Options{Registry: filepath.Join(dir, "none.yaml"), Cases: []string{good}}, "none.yaml"},
		{"no cases", Options{Registry: registry, Cases: []string{filepath.Join(dir, "none")}}, "none"},
		{"unknown agent", Options{Registry: registry, Cases: []string{bad}}, `bad.yaml:2:53: the registry has no agent "nobody"`},
		{"no cassette", Options{Registry: registry, Cases: []string{good}, Cassette: filepath.Join(dir, "none.jsonl")}, "none.jsonl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadConfig(tt.opts, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// recorder records the errors of a test.
type recorder []string

func (*recorder) Helper() {}

func (s *recorder) Errorf(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

func (s *recorder) Skipf(format string, args ...any) {
	*s = append(*s, "skip: "+fmt.Sprintf(format, args...))
}

func TestCheckResult(t *testing.T) {
	var passed, failed, known, outdated recorder
	checkResult(&passed, &golden.CaseResult{ID: "a", Passed: true})
	checkResult(&failed, &golden.CaseResult{
		ID: "b", File: "cases.yaml", Line: 7, Input: "review this", Differences: []string{"outcome: got fallback_b, want dispatch", "agents: got none, want quality_agent"},
		Actual: golden.Actual{Intent: "unknown", Domains: []string{"python"}, Confidence: 0.25, Source: "lexical"},
	})
	checkResult(&known, &golden.CaseResult{ID: "c", KnownFailure: "a typo", Differences: []string{"agents: got none, want quality_agent"}})
	if diff := cmp.Diff(recorder{"skip: known failure: a typo"}, known); diff != "" {
		t.Errorf("messages of a known failure (-want +got):\n%s", diff)
	}
	checkResult(&outdated, &golden.CaseResult{ID: "d", Passed: true, KnownFailure: "a typo", Differences: []string{"remove the mark"}})
	if len(outdated) != 1 || !strings.Contains(outdated[0], "remove the mark") {
		t.Errorf("known failure that passed: got %q, want its difference", outdated)
	}
	want := recorder{"cases.yaml:7: \"review this\"\n\toutcome: got fallback_b, want dispatch\n\tagents: got none, want quality_agent\n\tread as unknown [python], confidence 0.25 (lexical)"}
	if diff := cmp.Diff(recorder(nil), passed); diff != "" {
		t.Errorf("messages of a passed case (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("messages of a failed case (-want +got):\n%s", diff)
	}
}
