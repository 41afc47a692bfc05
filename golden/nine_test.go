package golden

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/routediff"
	"github.com/caprouter/caprouter/internal/testkit"
)

// The registries of testdata/nine have the same nine agents. Like the prompts, they were written as
// by a new user, before any prompt was routed. The counts are in docs/quality.md; -update corrects
// them. A prompt is right if its outcome and agents are the expected ones, and dispatched wrongly
// if other agents are chosen.
func TestNineAgents_RouteWithoutModel(t *testing.T) {
	testkit.SkipWithRace(t)
	const document, prompts = "../docs/quality.md", "testdata/nine/prompts.yaml"
	tests := []struct {
		registry           string
		plain, goal        int // number of right prompts: of a plain linear model, and the goal
		minRight, maxWrong int // limits that prevent a regression
	}{
		{"names", 12, 16, 19, 4},
		{"keywords", 20, 21, 29, 4},
		{"examples-50", 19, 20, 28, 4},
		{"examples-160", 27, 28, 35, 6},
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, tt := range tests {
		s, err := capabilities.Load("testdata/nine/" + tt.registry + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		cases, err := LoadCases([]string{prompts}, NewDeclaredNames(s))
		if err != nil {
			t.Fatal(err)
		}
		right, wrong := countRouted(runCases(t, Config{Registry: s, Cases: cases}))
		examples := "–"
		if own := ownExamples(s); len(own) > 0 {
			n, _ := countRouted(runCases(t, Config{Registry: s, Cases: own}))
			examples = fmt.Sprintf("%d of %d", n, len(own))
		}
		t.Logf("%-12s %d of %d right (goal %d), %d dispatched wrongly; examples routed to their agent: %s", tt.registry, right, len(cases), tt.goal, wrong, examples)
		if right < tt.minRight || wrong > tt.maxWrong {
			t.Errorf("%s: got %d right and %d dispatched wrongly, want at least %d and at most %d", tt.registry, right, wrong, tt.minRight, tt.maxWrong)
		}
		row := regexp.MustCompile(`(?m)^\| ` + tt.registry + ` \|.*\|$`).FindString(text)
		want := fmt.Sprintf("| %s | %d | %d | ≥ %d | %d | %s |", tt.registry, right, tt.plain, tt.goal, wrong, examples)
		switch {
		case row == "":
			t.Errorf("%s: got no row for %s, want %q", document, tt.registry, want)
		case row != want && *update:
			text = strings.Replace(text, row, want, 1)
		case row != want:
			t.Errorf("%s: got %q, want %q (-update corrects it)", document, row, want)
		}
	}
	if text != string(data) && !t.Failed() {
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// countRouted counts the cases with the expected outcome and agents, and those dispatched to other
// agents.
func countRouted(r *Report) (right, wrong int) {
	for i := range r.Cases {
		c := &r.Cases[i]
		switch {
		case c.Actual.Outcome == c.Expect.Outcome && routediff.SameSet(c.Actual.Agents, c.Expect.Agents):
			right++
		case c.Actual.Outcome == Dispatch:
			wrong++
		}
	}
	return right, wrong
}

// ownExamples returns a case for each example of the registry.
func ownExamples(s *capabilities.Snapshot) []Case {
	var cases []Case
	for _, a := range s.Catalogue.Agents {
		for _, intent := range a.Match.Intent {
			for _, text := range a.Examples[intent] {
				cases = append(cases, Case{ID: text, Input: text, Expect: Expect{Outcome: Dispatch, Agents: []string{a.ID}}})
			}
		}
	}
	return cases
}
