package golden

import (
	"fmt"
	"slices"
)

// Comparison is the difference between a report and its baseline, by case id.
// The lists are in the order of the report that contains the case.
type Comparison struct {
	Regressions []string `json:"regressions"`  // passed before, fail now
	NewFailures []string `json:"new_failures"` // fail now, not in the baseline
	KnownFailed []string `json:"known_failed"` // failed before, or marked as a known failure, fail now
	Fixed       []string `json:"fixed"`        // failed before, pass now
	// Gone lists cases of the baseline that were not run now. It is empty if
	// the run was interrupted.
	Gone []string `json:"gone"`
}

// ReadBaseline reads a report for use as a baseline. It rejects reports that
// are interrupted, empty or have duplicate cases.
func ReadBaseline(file string) (*Report, error) {
	r, err := ReadJSON(file)
	if err != nil {
		return nil, err
	}
	switch s := &r.Summary; {
	case r.Interrupted:
		return nil, fmt.Errorf("%s: the report of an interrupted run, %d of %d cases: make it again", file, s.Total, s.Planned)
	case len(r.Cases) == 0:
		return nil, fmt.Errorf("%s: a report without cases: make it again with golden run --json", file)
	}
	seen := make(map[string]bool, len(r.Cases))
	for i := range r.Cases {
		id := r.Cases[i].ID
		if seen[id] {
			return nil, fmt.Errorf("%s: the case %q occurs twice: make it again with golden run --json", file, truncateValue(id))
		}
		seen[id] = true
	}
	return r, nil
}

// HasAny reports whether the report contains any of the cases.
func (r *Report) HasAny(cases []Case) bool {
	ids := make(map[string]bool, len(r.Cases))
	for i := range r.Cases {
		ids[r.Cases[i].ID] = true
	}
	return slices.ContainsFunc(cases, func(c Case) bool { return ids[c.ID] })
}

// String describes the classifier: "lexical", or "llm, gemini flash, prompts
// router/1".
func (c Classifier) String() string {
	if c.Model == "" {
		return c.Mode
	}
	return fmt.Sprintf("%s, %s %s, prompts %s", c.Mode, c.Provider, c.Model, c.PromptVersion)
}

// CompareReports compares a report with the baseline.
func CompareReports(baseline, now *Report) Comparison {
	passed := make(map[string]bool, len(baseline.Cases))
	for i := range baseline.Cases {
		passed[baseline.Cases[i].ID] = baseline.Cases[i].Passed
	}
	var c Comparison
	here := make(map[string]bool, len(now.Cases))
	for i := range now.Cases {
		r := &now.Cases[i]
		here[r.ID] = true
		before, known := passed[r.ID]
		switch {
		case r.Passed && known && !before:
			c.Fixed = append(c.Fixed, r.ID)
		case r.Passed:
		case r.isMarked():
			c.KnownFailed = append(c.KnownFailed, r.ID)
		case !known:
			c.NewFailures = append(c.NewFailures, r.ID)
		case before:
			c.Regressions = append(c.Regressions, r.ID)
		default:
			c.KnownFailed = append(c.KnownFailed, r.ID)
		}
	}
	for i := range baseline.Cases {
		if id := baseline.Cases[i].ID; !here[id] && !now.Interrupted {
			c.Gone = append(c.Gone, id)
		}
	}
	return c
}
