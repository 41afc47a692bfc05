package golden

import (
	"cmp"
	"maps"
	"slices"
)

// summarise fills the report with the results there are.
func summarise(r *Report, cases []Case, results []*CaseResult) *Report {
	r.Cases = make([]CaseResult, 0, len(results))
	r.Summary.Planned = len(cases)
	outcomes := map[Outcome]int{}
	tags := map[string]TagCount{}
	intents, agents := map[ConfusionCell]int{}, map[ConfusionCell]int{}
	for i, result := range results {
		if result == nil {
			continue
		}
		r.Cases = append(r.Cases, *result)
		r.Summary.count(result)
		outcomes[result.Actual.Outcome]++
		countTags(tags, result)
		if result.Actual.Outcome == "" {
			continue // refused: nobody read it
		}
		countCells(intents, agents, result)
		if cases[i].LLM == nil {
			r.Confidences = append(r.Confidences, pointOf(result))
		}
	}
	for _, o := range []Outcome{Dispatch, Clarify, FallbackA, FallbackB, FallbackC, ""} {
		if n := outcomes[o]; n > 0 {
			r.Summary.ByOutcome = append(r.Summary.ByOutcome, OutcomeCount{cmp.Or(string(o), "refused"), n})
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		r.Summary.ByTag = append(r.Summary.ByTag, tags[tag])
	}
	r.Confusion = Confusion{Intents: cells(intents), Agents: cells(agents)}
	return r
}

func (s *Summary) count(r *CaseResult) {
	s.Total++
	if r.Passed {
		s.Passed++
	} else {
		s.Failed++
	}
}

func countTags(tags map[string]TagCount, r *CaseResult) {
	for _, tag := range sorted(r.Tags) {
		n := tags[tag]
		n.Tag = tag
		n.Total++
		if r.Passed {
			n.Passed++
		}
		tags[tag] = n
	}
}

// countCells books the case where it names what is counted. An alternate that
// was met counts as the expected agents: it is no confusion.
func countCells(intents, agents map[ConfusionCell]int, r *CaseResult) {
	if r.Expect.Intent != "" {
		intents[ConfusionCell{Expected: r.Expect.Intent, Got: r.Actual.Intent}]++
	}
	if r.Expect.Agents == nil && (r.Expect.Outcome == "" || r.Expect.Outcome == Dispatch) {
		return
	}
	c := ConfusionCell{Expected: receivers(r.Expect.Agents, r.Expect.Outcome), Got: receivers(r.Actual.Agents, r.Actual.Outcome)}
	if r.Passed {
		c.Got = c.Expected
	}
	agents[c]++
}

// receivers are the agents or, where there are none, what happened instead.
func receivers(agents []string, outcome Outcome) string {
	if len(agents) == 0 && outcome != "" {
		return string(outcome)
	}
	return setText(agents)
}

func cells(counts map[ConfusionCell]int) []ConfusionCell {
	list := make([]ConfusionCell, 0, len(counts))
	for c, n := range counts {
		c.Count = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b ConfusionCell) int {
		return cmp.Or(cmp.Compare(a.Expected, b.Expected), cmp.Compare(a.Got, b.Got))
	})
	return list
}

func pointOf(r *CaseResult) ConfidencePoint {
	right := r.Passed
	if r.Expect.Intent != "" {
		right = r.Expect.Intent == r.Actual.Intent
	}
	return ConfidencePoint{ID: r.ID, Confidence: r.Actual.Confidence, Correct: right}
}
