package golden

import (
	"context"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// Candidate is a recorded request that would be a useful example of the registry:
// without a model, it is not routed to its agent.
type Candidate struct {
	LabelledText

	// Without is the routing without a model, with the registry and the candidates
	// before this one as its examples.
	Without Actual `json:"without_model"`
}

// RightCount counts texts that are routed to their agent without a model.
type RightCount struct {
	Texts  int `json:"texts"`
	Before int `json:"right_before"` // with the registry as it is
	After  int `json:"right_after"`  // with the candidates as examples
}

// CandidateReport is the result of FindCandidates.
type CandidateReport struct {
	Registry   string      `json:"registry_version"` // without the candidates
	Candidates []Candidate `json:"candidates"`
	All        RightCount  `json:"all"`
	Others     RightCount  `json:"others"` // the texts that are no candidates: they show what the examples teach
	// NoGain counts texts that are routed elsewhere, but as examples would send as many
	// others elsewhere.
	NoGain int `json:"no_gain"`
	// More means that the limit was reached.
	More    bool           `json:"more,omitzero"`
	LeftOut map[string]int `json:"left_out"` // of the decisions, by reason

	File []byte `json:"-"` // the registry file with the candidates as examples
}

// FindCandidates returns at most limit of the texts of the decisions that improve the
// routing without a model if they are examples of the registry, oldest first. A text is
// one if it is not routed to its agent, although the candidates before it are examples,
// and more texts are routed right with it than without it. A text for which no agent is
// right is no candidate, and is routed right if no agent gets it. The registry file with this
// data is the one of cfg.Registry. If ctx ends, FindCandidates returns its error.
func FindCandidates(
	ctx context.Context, cfg Config, file string, data []byte, decisions []contract.DecisionEntry, limit int,
) (*CandidateReport, error) {
	report := &CandidateReport{Registry: cfg.Registry.Catalogue.Version, Candidates: []Candidate{}, File: data}
	var texts []LabelledText
	texts, report.LeftOut = LabelDecisions(cfg.Registry, decisions)
	for i := range texts {
		if texts[i].Agent == "" {
			report.LeftOut[LeftNone]++
		}
	}
	progress := cfg.Progress
	cfg.Cases, cfg.Progress = casesOf(texts), nil
	results, right, err := countRight(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	before, chosen := results, make([]bool, len(texts))
	for i := range texts {
		if progress != nil {
			progress(i+1, len(texts))
		}
		if results[i].Passed || texts[i].Agent == "" {
			continue
		}
		if len(report.Candidates) == limit {
			report.More = true
			break
		}
		t := &texts[i]
		with, err := capabilities.AddExample(file, report.File, t.Agent, t.Intent, t.Text)
		if err != nil { // it is too long, for example
			report.LeftOut[LeftInvalid]++
			continue
		}
		if cfg.Registry, err = capabilities.Parse(file, with); err != nil {
			return nil, err
		}
		taught, n, err := countRight(ctx, &cfg)
		if err != nil {
			return nil, err
		}
		if n <= right {
			report.NoGain++
			continue
		}
		report.Candidates = append(report.Candidates, Candidate{*t, results[i].Actual})
		report.File, results, right, chosen[i] = with, taught, n, true
	}
	for i := range texts {
		if texts[i].Agent == "" {
			continue
		}
		report.All.add(before[i].Passed, results[i].Passed)
		if !chosen[i] {
			report.Others.add(before[i].Passed, results[i].Passed)
		}
	}
	return report, nil
}

func (c *RightCount) add(before, after bool) {
	c.Texts++
	if before {
		c.Before++
	}
	if after {
		c.After++
	}
}

// casesOf returns a case for each text, which expects its agent, or that no agent gets it.
func casesOf(texts []LabelledText) []Case {
	cases := make([]Case, len(texts))
	for i := range texts {
		expect := Expect{Outcome: Dispatch, Agents: []string{texts[i].Agent}}
		if texts[i].Agent == "" {
			expect = Expect{Agents: []string{}}
		}
		cases[i] = Case{ID: texts[i].RequestID, Input: texts[i].Text, Expect: expect}
	}
	return cases
}

// countRight runs the cases and counts those that pass.
func countRight(ctx context.Context, cfg *Config) ([]CaseResult, int, error) {
	r, err := Run(ctx, *cfg)
	if err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	right := 0
	for i := range r.Cases {
		if r.Cases[i].Passed {
			right++
		}
	}
	return r.Cases, right, nil
}
