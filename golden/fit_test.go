package golden

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/llm"
)

// replyWithConfidence replies code_review with the confidence in the request, in percent.
func replyWithConfidence(user string) (*llm.Reply, error) {
	for percent := 100; percent > 0; percent-- {
		if strings.Contains(user, fmt.Sprintf("at %d percent", percent)) {
			return &llm.Reply{Text: fmt.Sprintf(`{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":%.2f}`, float64(percent)/100)}, nil
		}
	}
	return &llm.Reply{Text: `{"intent":"unknown","domains":[],"subtasks":[],"confidence":1}`}, nil
}

// percentCases are cases that are correct from 60 percent on.
func percentCases(t *testing.T, splits ...string) []Case {
	t.Helper()
	var b strings.Builder
	b.WriteString("cases:\n")
	for _, split := range splits {
		for percent := 35; percent <= 95; percent += 10 {
			expect := "{ outcome: fallback_b, agents: [] }"
			if percent >= 60 {
				expect = "{ outcome: dispatch, agents: [quality_agent] }"
			}
			fmt.Fprintf(&b, "  - { id: %s%d, input: \"at %d percent\", split: %s, expect: %s }\n", split, percent, percent, split, expect)
		}
	}
	b.WriteString("  - { id: scripted, input: x, split: train, llm: x, expect: { outcome: clarify } }\n")
	return parse(t, b.String())
}

func fitThresholds(t *testing.T, cfg Config, precision float64) *FitResult {
	t.Helper()
	cfg.Classifier = classifier.Config{Model: &fakeModel{say: replyWithConfidence}}
	fit, err := FitThresholds(t.Context(), cfg, precision)
	if err != nil {
		t.Fatal(err)
	}
	return fit
}

func TestFitThresholds_FindsThreshold(t *testing.T) {
	low := 0.3
	s := changedRegistry(t, func(s *capabilities.Catalogue) { s.Routing.MinConfidence = &low })
	fit := fitThresholds(t, Config{Registry: s, Cases: percentCases(t, Train, Test)}, 0)
	all := 1.0
	want := &FitScore{Cases: 7, Passed: 7, Dispatched: 4, Coverage: 4.0 / 7, Precision: &all}
	for name, got := range map[string]*FitScore{"train": &fit.TrainBest, "held out": fit.HeldOutBest} {
		plain := *got
		plain.Setting = Thresholds{}
		if diff := cmp.Diff(want, &plain); diff != "" {
			t.Errorf("%s, proposed (-want +got):\n%s", name, diff)
		}
	}
	if now := fit.TrainNow; now.Passed != 4 || now.Misroutes != 3 || now.Dispatched != 7 {
		t.Errorf("train, now: got %+v, want 4 of 7 as expected and 3 misroutes", now)
	}
	if !fit.Reached || fit.Target != DefaultPrecision || fit.Settings != len(thresholdGrid()) {
		t.Errorf("got reached %v, target %v, %d settings; want all settings tried and the target reached", fit.Reached, fit.Target, fit.Settings)
	}
	// Of several solutions, the one closest to the registry is chosen.
	if got, want := fit.Patch(), "routing:\n  min_confidence: 0.6 # was 0.3\n"; got != want {
		t.Errorf("got patch %q, want %q", got, want)
	}
	previous := 1.0
	for _, point := range fit.Curve {
		if point.Coverage > previous {
			t.Errorf("at %v: got coverage %v above that of a lower threshold", *point.Setting.MinConfidence, point.Coverage)
		}
		previous = point.Coverage
	}
	if *s.Catalogue.Routing.MinConfidence != 0.3 || s.Catalogue.Fallback.Policy != capabilities.FallbackAuto {
		t.Error("got the registry changed, want it unchanged")
	}
}

func TestFitThresholds_KeepsGoodThresholds(t *testing.T) {
	// The default for a model is the match threshold 0.65, so 0.6 is no improvement.
	fit := fitThresholds(t, Config{Registry: registry(t), Cases: percentCases(t, Train)}, 0)
	if got := fit.Patch(); got != "" {
		t.Errorf("got patch %q, want none", got)
	}
	if fit.HeldOutBest != nil || fit.Curve != nil {
		t.Errorf("got a curve of %d points, want none without held-out cases", len(fit.Curve))
	}
}

// Without dispatches precision is undefined, so disabling routing does not reach the target.
func TestFitThresholds_PrecisionNotReached(t *testing.T) {
	cases := percentCases(t, Train, Test)
	for i := range cases {
		cases[i].Expect = Expect{Outcome: Dispatch, Agents: []string{"rag_agent"}}
	}
	fit := fitThresholds(t, Config{Registry: registry(t), Cases: cases}, 0)
	if fit.Reached || fit.Patch() != "" {
		t.Errorf("got reached %v and patch %q, want the target not reached and no patch", fit.Reached, fit.Patch())
	}
	if fit.TrainBest.Dispatched == 0 {
		t.Errorf("got nearest %+v, want one that dispatches", fit.TrainBest)
	}
	last := fit.Curve[len(fit.Curve)-1] // above the confidence of every case
	if last.Dispatched != 0 || last.Precision != nil {
		t.Errorf("got %+v, want no precision if nothing is dispatched", last)
	}
}

// One case is wrong at every confidence: the nearest thresholds still dispatch.
func TestFitThresholds_Nearest(t *testing.T) {
	cases := percentCases(t, Train)
	for i := range cases {
		if cases[i].ID == "train95" {
			cases[i].Expect = Expect{Outcome: Dispatch, Agents: []string{"rag_agent"}}
		}
	}
	fit := fitThresholds(t, Config{Registry: registry(t), Cases: cases}, 0)
	if fit.Reached || fit.Patch() != "" || fit.TrainBest.Precision == nil || *fit.TrainBest.Precision != 0.75 {
		t.Errorf("got reached %v, patch %q, %+v; want not reached, and the nearest with 3 of 4", fit.Reached, fit.Patch(), fit.TrainBest)
	}
}

func TestIsBetter(t *testing.T) {
	score := func(cases, passed, dispatched, misroutes int) *FitScore {
		s := &FitScore{Cases: cases, Passed: passed, Dispatched: dispatched, Misroutes: misroutes}
		s.computeShares()
		return s
	}
	tests := []struct {
		name string
		a, b *FitScore
	}{
		{"target before more expected results", score(100, 60, 50, 0), score(100, 80, 100, 20)},
		{"more expected results before precision, both on target", score(100, 90, 91, 1), score(100, 70, 40, 0)},
		{"dispatch before none, both off target", score(100, 50, 100, 50), score(100, 60, 0, 0)},
		{"target before no dispatch with more expected results", score(100, 50, 40, 0), score(100, 60, 0, 0)},
		{"nearer to the target, both off target", score(100, 60, 50, 5), score(100, 70, 90, 20)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !isBetter(tt.a, tt.b, Thresholds{}, 0.98) || isBetter(tt.b, tt.a, Thresholds{}, 0.98) {
				t.Errorf("got the other order, want %+v before %+v", tt.a, tt.b)
			}
		})
	}
}

func TestFitThresholds_Rejects(t *testing.T) {
	s := registry(t)
	tests := []struct {
		name      string
		cfg       Config
		precision float64
		want      string
	}{
		{"no train split", Config{Registry: s, Cases: parse(t, everyOutcome)}, 0, "add `split: train`"},
		{"precision above 1", Config{Registry: s}, 1.5, "the precision must be over 0 and at most 1"},
		{"no registry", Config{Cases: percentCases(t, Train)}, 0, "a registry is required"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := FitThresholds(t.Context(), tt.cfg, tt.precision); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestFitThresholds_NeedsAllInteractions(t *testing.T) {
	cases := percentCases(t, Train)
	c := record(t, &fakeModel{say: replyWithConfidence}, RecordConfig{}, cases[:3]).Cassette
	_, err := FitThresholds(t.Context(), Config{Registry: registry(t), Cases: cases, Cassette: c}, 0)
	if want := "case train65: " + errNotRecorded; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFitThresholds_Interrupted(t *testing.T) {
	cases := percentCases(t, Train, Test)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	fit, err := FitThresholds(ctx, Config{
		Registry: registry(t), Cases: cases, Workers: 1, Classifier: classifier.Config{Model: &fakeModel{say: replyWithConfidence}},
		Progress: func(done, total int) {
			if total == len(thresholdGrid()) && done == 10 {
				cancel()
			}
		},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !fit.Interrupted || fit.Settings != 10 || fit.HeldOutBest == nil {
		t.Errorf("got interrupted %v, %d settings, held out %v; want the best of 10, with its held-out score", fit.Interrupted, fit.Settings, fit.HeldOutBest)
	}
	cancel()
	if _, err := FitThresholds(ctx, Config{Registry: registry(t), Cases: cases}, 0); err == nil {
		t.Error("interrupted before the first setting: got no error")
	}
}

func TestDiffRegistries(t *testing.T) {
	a := registry(t)
	b, err := capabilities.Load("testdata/registry_b.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := ReadYAML("cases.yaml", []byte(`
cases:
  - { id: same, input: "Do a cost analysis of azure", expect: { outcome: dispatch } }
  - { id: other-agent, input: "Do a code review of this python module", expect: { outcome: dispatch } }
  - { id: agent-gone, input: "Answer from the docs: doc answering", expect: { outcome: dispatch } }
  - { id: model-less-sure, input: "x", expect: { outcome: dispatch }, llm: '{"intent":"cost_analysis","domains":["azure"],"subtasks":[],"confidence":0.7}' }
`), NewDeclaredNames(a, b))
	if err != nil {
		t.Fatal(err)
	}
	d, err := DiffRegistries(t.Context(), Config{Registry: a, Cases: cases}, b)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, rule := range d.Rules {
		fmt.Fprintf(&text, "%s\n", rule)
	}
	for _, c := range d.Changes {
		fmt.Fprintf(&text, "%s: %s\n", c.ID, strings.Join(c.What, ", "))
		for _, why := range c.Why {
			fmt.Fprintf(&text, "  %s\n", why)
		}
		if c.DecisionA == nil || c.DecisionB == nil {
			t.Errorf("%s: got no decision, want one", c.ID)
		}
	}
	compareFile(t, "diff.txt", []byte(text.String()))
	if d.Cases != 4 || d.A != a.Catalogue.Version || d.B != b.Catalogue.Version || d.Interrupted {
		t.Errorf("got %d cases of %s and %s, interrupted %v", d.Cases, d.A, d.B, d.Interrupted)
	}
	none, err := DiffRegistries(t.Context(), Config{Registry: a, Cases: cases}, a)
	if err != nil || len(none.Changes)+len(none.Rules) > 0 {
		t.Errorf("same registry twice: got %v, error %v, want no change", none, err)
	}
}

func TestDiffRegistries_Rejects(t *testing.T) {
	a := registry(t)
	if _, err := DiffRegistries(t.Context(), Config{Registry: a}, nil); err == nil {
		t.Error("without a second registry: got no error, want one")
	}
	if _, err := DiffRegistries(t.Context(), Config{}, a); err == nil {
		t.Error("without a first registry: got no error, want one")
	}
	cases := parse(t, recordedCases)
	c := record(t, &fakeModel{say: recordedReplies}, RecordConfig{}, cases[:1]).Cassette
	b := changedRegistry(t, func(s *capabilities.Catalogue) { s.Agents, s.Learned = s.Agents[1:], s.Learned[1:] })
	if _, err := DiffRegistries(t.Context(), Config{Registry: a, Cases: cases[:1], Cassette: c}, b); err == nil || !strings.Contains(err.Error(), "the cassette has no reply for one of the two registries") {
		t.Errorf("got %v, want an error because the cassette fits one registry only", err)
	}
}

func TestDiffRegistries_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d, err := DiffRegistries(ctx, Config{
		Registry: registry(t), Cases: parse(t, everyOutcome), Workers: 1, Progress: func(int, int) { cancel() },
	}, registry(t))
	if err != nil || !d.Interrupted || d.Cases != 1 {
		t.Errorf("got %+v, error %v; want 1 case, interrupted", d, err)
	}
}
