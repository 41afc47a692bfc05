package golden

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/routediff"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// ids generates from few ids, so that sets overlap.
func ids() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3)
}

func results() *rapid.Generator[[]*CaseResult] {
	return rapid.Custom(func(t *rapid.T) []*CaseResult {
		var list []*CaseResult
		for i := range rapid.IntRange(0, 12).Draw(t, "cases") {
			c := Case{Expect: Expect{
				Outcome: rapid.SampledFrom([]Outcome{"", Dispatch, Clarify, FallbackA, AnyFallback}).Draw(t, "wanted"),
				Intent:  rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "wanted intent"),
			}}
			if rapid.Bool().Draw(t, "names agents") {
				c.Expect.Agents = append([]string{}, ids().Draw(t, "wanted agents")...)
			}
			r := &CaseResult{ID: fmt.Sprint(i), Expect: c.Expect, Tags: ids().Draw(t, "tags"), Actual: Actual{
				Outcome: rapid.SampledFrom([]Outcome{Dispatch, Clarify, FallbackA, FallbackB}).Draw(t, "got"),
				Agents:  ids().Draw(t, "agents"), Intent: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "intent"),
			}}
			r.Differences = diffExpected(&c, &r.Actual)
			r.Passed = len(r.Differences) == 0
			r.applyMark(rapid.SampledFrom([]string{"", "marked"}).Draw(t, "mark"))
			list = append(list, r)
		}
		return list
	})
}

// The counts of a report add up to its number of cases.
func TestReport_SummaryAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := results().Draw(t, "results")
		done := slices.Clone(list)
		for i := range done {
			if rapid.IntRange(0, 4).Draw(t, "not run") == 0 {
				done[i] = nil
			}
		}
		r := addResults(&Report{}, make([]Case, len(list)), done)
		s := &r.Summary
		if s.Planned != len(list) || s.Total != len(r.Cases) || s.Passed+s.Known+s.Failed != s.Total || len(r.Confidences) != s.Total {
			t.Fatalf("%d cases: got %+v and %d confidences", len(list), *s, len(r.Confidences))
		}
		outcomes, intents, named := 0, 0, 0
		for _, o := range s.ByOutcome {
			outcomes += o.Count
		}
		for _, c := range r.Confusion.Intents {
			intents += c.Count
		}
		for i := range r.Cases {
			if r.Cases[i].Expect.Intent != "" {
				named++
			}
		}
		if outcomes != s.Total || intents != named {
			t.Fatalf("got %d outcomes and %d intents, want %d and %d", outcomes, intents, s.Total, named)
		}
		for _, tag := range s.ByTag {
			if tag.Passed > tag.Total || tag.Total > s.Total || tag.Total == 0 {
				t.Fatalf("got %+v of %d", tag, s.Total)
			}
		}
		if !slices.IsSortedFunc(r.Confusion.Agents, func(a, b ConfusionCell) int { return strings.Compare(a.Expected+"\x00"+a.Got, b.Expected+"\x00"+b.Got) }) {
			t.Fatalf("the cells are not sorted: %v", r.Confusion.Agents)
		}
	})
}

// A case is in at most one list of a comparison, and in none only if it passes and did not fail
// before.
func TestCompareReports_IsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		verdicts := rapid.MapOf(rapid.StringMatching(`[a-f]`), rapid.Bool())
		before, now := verdicts.Draw(t, "before"), verdicts.Draw(t, "now")
		report := func(m map[string]bool) *Report {
			r := &Report{}
			for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
				if passed, ok := m[id]; ok {
					r.Cases = append(r.Cases, CaseResult{ID: id, Passed: passed})
				}
			}
			return r
		}
		c := CompareReports(report(before), report(now))
		in := map[string]string{}
		for name, list := range map[string][]string{
			"regression": c.Regressions, "new": c.NewFailures, "known": c.KnownFailed, "fixed": c.Fixed, "gone": c.Gone,
		} {
			for _, id := range list {
				if in[id] != "" {
					t.Fatalf("got %s in both %s and %s", id, in[id], name)
				}
				in[id] = name
			}
		}
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			was, known := before[id]
			is, here := now[id]
			want := ""
			switch {
			case known && !here:
				want = "gone"
			case here && !is && !known:
				want = "new"
			case here && !is && was:
				want = "regression"
			case here && !is:
				want = "known"
			case here && known && !was:
				want = "fixed"
			}
			if in[id] != want {
				t.Fatalf("%s, before %v %v, now %v %v: got %q, want %q", id, known, was, here, is, in[id], want)
			}
		}
	})
}

// A case that is encoded as JSON decodes to the same case.
func TestReadJSONL_RoundTrip(t *testing.T) {
	text := rapid.StringMatching(`[a-zé中"\\\t ]{0,8}[a-z]`)
	rapid.Check(t, func(t *rapid.T) {
		want := Case{
			ID: rapid.StringMatching(`[a-z0-9-]{1,8}x`).Draw(t, "id"), Input: text.Draw(t, "input"),
			Expect: Expect{
				Outcome: rapid.SampledFrom([]Outcome{"", Clarify, AnyFallback}).Draw(t, "outcome"),
				Agents:  []string{}, Intent: text.Draw(t, "intent"), Domains: ids().Draw(t, "domains"), Reason: text.Draw(t, "reason"),
			},
			History: []Message{{"user", text.Draw(t, "turn")}}, Alternates: [][]string{{"a"}},
			Split: rapid.SampledFrom([]string{"", Train, Test}).Draw(t, "split"), Tags: append([]string{}, ids().Draw(t, "tags")...),
			LLM: ScriptedReplies{text.Draw(t, "reply")}, KnownFailure: text.Draw(t, "mark"),
		}
		line, err := strictjson.Marshal(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadJSONL("c.jsonl", line, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		want.File, want.Line = "c.jsonl", 1
		if want.Expect.Domains != nil && len(want.Expect.Domains) == 0 {
			want.Expect.Domains = []string{}
		}
		if diff := cmp.Diff([]Case{want}, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", line, diff)
		}
	})
}

// The order of agents does not matter.
func TestSameSet_IgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Case{Expect: Expect{Agents: append([]string{}, ids().Draw(t, "agents")...)}, Alternates: [][]string{ids().Draw(t, "alternate")}}
		got := ids().Draw(t, "got")
		turned := slices.Clone(got)
		slices.Reverse(turned)
		if agentsMatch(&c, got) != agentsMatch(&c, turned) || routediff.FormatSet(got) != routediff.FormatSet(turned) {
			t.Fatalf("got %v and %v different for %+v, want equal", got, turned, c)
		}
		if !agentsMatch(&c, c.Expect.Agents) || !agentsMatch(&c, c.Alternates[0]) {
			t.Fatalf("got %+v rejecting its own agents", c)
		}
	})
}

func TestRoutedTo(t *testing.T) {
	tests := []struct {
		agents  []string
		outcome Outcome
		want    string
	}{
		{[]string{"b", "a", "b"}, Dispatch, "a + b"},
		{nil, Clarify, "clarify"},
		{nil, AnyFallback, "fallback"},
		{nil, "", "none"},
	}
	for _, tt := range tests {
		if got := routedTo(tt.agents, tt.outcome); got != tt.want {
			t.Errorf("%v %s: got %q, want %q", tt.agents, tt.outcome, got, tt.want)
		}
	}
}

func TestConfidencePoint(t *testing.T) {
	tests := []struct {
		name string
		r    CaseResult
		want bool
	}{
		{"correct intent, failed case", CaseResult{Passed: false, Expect: Expect{Intent: "x"}, Actual: Actual{Intent: "x"}}, true},
		{"other intent, passed case", CaseResult{Passed: true, Expect: Expect{Intent: "x"}, Actual: Actual{Intent: "y"}}, false},
		{"no expected intent", CaseResult{Passed: true, Actual: Actual{Intent: "y"}}, true},
	}
	for _, tt := range tests {
		if got := confidencePoint(&tt.r).Correct; got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestIsRoutedCorrectly(t *testing.T) {
	dispatched := Actual{Outcome: Dispatch, Agents: []string{"a"}, Intent: "x", Domains: []string{"p"}}
	refused := Actual{Outcome: FallbackA, Intent: "x"}
	tests := []struct {
		name   string
		expect Expect
		got    Actual
		want   bool
	}{
		{"agents", Expect{Agents: []string{"a"}}, dispatched, true},
		{"other agents", Expect{Agents: []string{"b"}}, dispatched, false},
		{"other fallback", Expect{Outcome: FallbackB}, refused, true},
		{"no fallback", Expect{Outcome: FallbackB}, dispatched, false},
		{"agents before the intent", Expect{Agents: []string{"a"}, Intent: "y"}, dispatched, true},
		{"other intent", Expect{Intent: "y"}, dispatched, false},
		{"expected intent", Expect{Intent: "x", Domains: []string{"p"}}, dispatched, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := isRoutedCorrectly(&Case{Expect: tt.expect}, &tt.got); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// isBetter is a strict order, so that the order of the search does not matter.
func TestIsBetter_IsStrictOrder(t *testing.T) {
	score := rapid.Custom(func(t *rapid.T) FitScore {
		v := float64(rapid.IntRange(0, 3).Draw(t, "min")) / 4
		s := FitScore{
			Setting: Thresholds{ConfidenceThreshold: float64(rapid.IntRange(0, 2).Draw(t, "match")) / 2},
			Passed:  rapid.IntRange(0, 3).Draw(t, "passed"), Misroutes: rapid.IntRange(0, 2).Draw(t, "misroutes"),
		}
		if share := float64(rapid.IntRange(-1, 4).Draw(t, "precision")) / 4; share >= 0 {
			s.Precision = &share // otherwise nothing is dispatched
		}
		if v > 0 {
			s.Setting.MinConfidence = &v
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := score.Draw(t, "a"), score.Draw(t, "b"), score.Draw(t, "c")
		now := score.Draw(t, "now").Setting
		less := func(a, b FitScore) bool { return isBetter(&a, &b, now, 0.75) }
		switch {
		case less(a, a):
			t.Fatal("got a score better than itself")
		case less(a, b) && less(b, a):
			t.Fatal("got two scores better than each other")
		case less(a, b) && less(b, c) && !less(a, c):
			t.Fatal("got an order that is not transitive")
		case !a.reachesPrecision(0.75) && b.reachesPrecision(0.75) && less(a, b):
			t.Fatal("got a setting below the target better than one at the target")
		}
	})
}

func TestFitResult_Patch(t *testing.T) {
	half, low := 0.5, 0.25
	tests := []struct {
		name      string
		now, best Thresholds
		want      string
	}{
		{"nothing", Thresholds{&half, 0.65, 0.1}, Thresholds{&half, 0.65, 0.1}, ""},
		{"everything", Thresholds{nil, 0.65, 0.1}, Thresholds{&half, 0.8, 0}, "routing:\n  confidence_threshold: 0.8 # was 0.65\n  min_confidence: 0.5 # was not set\n  ambiguity_threshold: 0 # was 0.1\n"},
		{"one key", Thresholds{&low, 0.65, 0.1}, Thresholds{&half, 0.65, 0.1}, "routing:\n  min_confidence: 0.5 # was 0.25\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fit := FitResult{Reached: true, TrainNow: FitScore{Setting: tt.now}, TrainBest: FitScore{Setting: tt.best}}
			got := fit.Patch()
			if got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if _, err := capabilities.Parse("patched.yaml", []byte("clients: {}\n"+got)); err != nil {
				t.Errorf("parse the registry with the patch: %v", err)
			}
		})
	}
}

func TestDiffRules(t *testing.T) {
	a := registry(t)
	b := changedRegistry(t, func(s *capabilities.Catalogue) {
		v := 0.5
		s.Routing = capabilities.Routing{ConfidenceThreshold: 0.8, MinConfidence: &v, AmbiguityThreshold: 0.2, TopK: 3}
		s.Fallback.Policy = "B"
	})
	want := []string{
		"routing.confidence_threshold: 0.65 in A, 0.8 in B", "routing.min_confidence: not set in A, 0.5 in B", "routing.ambiguity_threshold: 0.1 in A, 0.2 in B",
		"routing.topk: 2 in A, 3 in B", "routing.auto_split_if_conflict: true in A, false in B", "routing.implied_domains: true in A, false in B",
		"fallback.policy: auto in A, B in B",
	}
	if diff := cmp.Diff(want, diffRules(a.Catalogue, b.Catalogue)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
