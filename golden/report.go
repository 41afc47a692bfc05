package golden

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/routediff"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Outcome is the routing outcome of a request.
type Outcome string

// Outcomes. A report contains the first five. AnyFallback in an expectation
// includes all fallbacks, because the policy is up to the registry.
const (
	Dispatch  Outcome = "dispatch"
	Clarify   Outcome = "clarify"
	FallbackA Outcome = "fallback_a"
	FallbackB Outcome = "fallback_b"
	FallbackC Outcome = "fallback_c"

	AnyFallback Outcome = "fallback" // in Expect only
)

// reportVersion is the version of the report format.
const reportVersion = 1

// Report is the result of a run. It is deterministic: equal runs have equal
// reports, byte by byte.
type Report struct {
	Version     int               `json:"version"`  // of this format
	Registry    string            `json:"registry"` // version of the registry
	Classifier  Classifier        `json:"classifier"`
	Interrupted bool              `json:"interrupted,omitzero"` // some cases were not run
	Summary     Summary           `json:"summary"`
	Confusion   Confusion         `json:"confusion"`
	Confidences []ConfidencePoint `json:"confidences"` // in the order of the cases
	Cases       []CaseResult      `json:"cases"`       // in the order of the files
}

// Classifier describes the classifier of a run.
type Classifier struct {
	Mode string `json:"mode"` // lexical, llm or cascade
	// The model, live or recorded; empty without one.
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	PromptVersion string `json:"prompt_version,omitempty"`
}

// Summary counts the cases.
type Summary struct {
	Planned   int          `json:"planned"` // Total plus the cases that were not run
	Total     int          `json:"total"`   // that were run
	Passed    int          `json:"passed"`  // without those that are marked as a known failure
	Known     int          `json:"known_failures"`
	Failed    int          `json:"failed"`     // CaseResult.Failed
	ByOutcome []NamedCount `json:"by_outcome"` // actual outcomes, in the order of the constants
	BySource  []NamedCount `json:"by_source"`  // of the classifications: llm, lexical, cache
	ByTag     []TagCount   `json:"by_tag"`     // sorted by tag
}

// NamedCount is the number of cases with an outcome or a source.
type NamedCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// TagCount counts the cases with a tag.
type TagCount struct {
	Tag    string `json:"tag"`
	Total  int    `json:"total"`
	Passed int    `json:"passed"`
}

// Confusion contains the confusion matrices over the cases that expect an
// intent, or agents or an outcome. Cells are sorted by expected, then actual;
// zero cells are omitted.
type Confusion struct {
	Intents []ConfusionCell `json:"intents"`
	// Agents are sets, "a + b". A request without chosen agents is listed with
	// its outcome.
	Agents []ConfusionCell `json:"agents"`
}

// ConfusionCell is one cell of a confusion matrix.
type ConfusionCell struct {
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Count    int    `json:"count"`
}

// ConfidencePoint is the confidence of a classification and whether it was
// correct: the input of risk–coverage curves and reliability diagrams.
type ConfidencePoint struct {
	ID         string  `json:"id"`
	Confidence float64 `json:"confidence"`
	// Correct reports that the intent is the expected one or, if none is
	// expected, that the case passed.
	Correct bool `json:"right"`
}

// CaseResult is the result of one case.
type CaseResult struct {
	ID          string   `json:"id"`
	File        string   `json:"file"`
	Line        int      `json:"line"`
	Split       string   `json:"split,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Input       string   `json:"input"`
	Expect      Expect   `json:"expect"`
	Actual      Actual   `json:"got"`
	Passed      bool     `json:"passed"`        // as expected
	Differences []string `json:"why,omitempty"` // one sentence per difference
	// Because states in one line why the request was read and decided like this, if the
	// case did not pass.
	Because string `json:"because,omitempty"`
	// KnownFailure is the reason of a case that is marked as a known failure in
	// this run, or else "".
	KnownFailure string `json:"known_failure,omitempty"`
	// Decision is the complete decision, if the case did not pass.
	Decision *contract.Decision `json:"decision,omitempty"`
}

// Failed reports whether the case needs attention: it did not pass and is not a
// known failure, or it passed and is still marked as one.
func (r *CaseResult) Failed() bool { return r.Passed == r.isMarked() }

// PassedDespiteMark reports whether the case passed and is still marked as a
// known failure.
func (r *CaseResult) PassedDespiteMark() bool { return r.Passed && r.isMarked() }

func (r *CaseResult) isMarked() bool { return r.KnownFailure != "" }

// Actual is the actual routing outcome of a case.
type Actual struct {
	Outcome    Outcome  `json:"outcome"` // "" if the router rejected the request
	Agents     []string `json:"agents"`  // chosen agents in the order of the subtasks
	Intent     string   `json:"intent"`
	Domains    []string `json:"domains"`
	Confidence float64  `json:"confidence"`
	Source     string   `json:"source"` // lexical, llm
	// Reason is the cause of a lexical classification instead of one by the
	// model (llm_invalid_json …), or else of a fallback or clarification
	// (no_match, low_confidence, ambiguous, divergent …), or else "".
	Reason string `json:"reason,omitempty"`
}

// WriteJSON writes the report as one line of JSON.
func WriteJSON(w io.Writer, r *Report) error {
	if err := strictjson.MarshalWrite(w, r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// ReadJSON reads a report that WriteJSON wrote.
func ReadJSON(file string) (*Report, error) {
	data, err := strictyaml.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := strictjson.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: not a report of golden run --json: %w", file, err)
	}
	if r.Version != reportVersion {
		return nil, fmt.Errorf("%s: a report of version %d; this program reads version %d: make it again with golden run --json", file, r.Version, reportVersion)
	}
	return &r, nil
}

// addResults completes the report with the available results.
func addResults(r *Report, cases []Case, results []*CaseResult) *Report {
	r.Cases = make([]CaseResult, 0, len(results))
	r.Summary.Planned = len(cases)
	outcomes, sources := map[string]int{}, map[string]int{}
	tags := map[string]TagCount{}
	intents, agents := map[ConfusionCell]int{}, map[ConfusionCell]int{}
	for i, result := range results {
		if result == nil {
			continue
		}
		r.Cases = append(r.Cases, *result)
		r.Summary.countResult(result)
		outcomes[cmp.Or(string(result.Actual.Outcome), rejected)]++
		countTags(tags, result)
		if result.Actual.Outcome == "" {
			continue // rejected: not classified
		}
		sources[result.Actual.Source]++
		countCells(intents, agents, result)
		if cases[i].LLM == nil {
			r.Confidences = append(r.Confidences, confidencePoint(result))
		}
	}
	r.Summary.ByOutcome = namedCounts(outcomes, string(Dispatch), string(Clarify), string(FallbackA), string(FallbackB), string(FallbackC), rejected)
	r.Summary.BySource = namedCounts(sources, string(contract.SourceLLM), string(contract.SourceLexical), string(contract.SourceCache))
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		r.Summary.ByTag = append(r.Summary.ByTag, tags[tag])
	}
	r.Confusion = Confusion{Intents: confusionCells(intents), Agents: confusionCells(agents)}
	return r
}

// rejected is the name of the outcome "".
const rejected = "refused"

// namedCounts returns the counts that are not zero, in the order of the names.
func namedCounts(counts map[string]int, names ...string) []NamedCount {
	list := make([]NamedCount, 0, len(names))
	for _, name := range names {
		if n := counts[name]; n > 0 {
			list = append(list, NamedCount{name, n})
		}
	}
	return list
}

func (s *Summary) countResult(r *CaseResult) {
	s.Total++
	switch {
	case r.Failed():
		s.Failed++
	case r.Passed:
		s.Passed++
	default:
		s.Known++
	}
}

func countTags(tags map[string]TagCount, r *CaseResult) {
	for _, tag := range routediff.SortedSet(r.Tags) {
		n := tags[tag]
		n.Tag = tag
		n.Total++
		if r.Passed {
			n.Passed++
		}
		tags[tag] = n
	}
}

// countCells counts the case in the matrices that it has expectations for. A
// matching alternate counts as the expected agents.
func countCells(intents, agents map[ConfusionCell]int, r *CaseResult) {
	if r.Expect.Intent != "" {
		intents[ConfusionCell{Expected: r.Expect.Intent, Got: r.Actual.Intent}]++
	}
	if r.Expect.Agents == nil && (r.Expect.Outcome == "" || r.Expect.Outcome == Dispatch) {
		return
	}
	c := ConfusionCell{Expected: routedTo(r.Expect.Agents, r.Expect.Outcome), Got: routedTo(r.Actual.Agents, r.Actual.Outcome)}
	if r.Passed {
		c.Got = c.Expected
	}
	agents[c]++
}

// routedTo returns the agents as text or, if there are none, the outcome.
func routedTo(agents []string, outcome Outcome) string {
	if len(agents) == 0 && outcome != "" {
		return string(outcome)
	}
	return routediff.FormatSet(agents)
}

func confusionCells(counts map[ConfusionCell]int) []ConfusionCell {
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

func confidencePoint(r *CaseResult) ConfidencePoint {
	right := r.Passed
	if r.Expect.Intent != "" {
		right = r.Expect.Intent == r.Actual.Intent
	}
	return ConfidencePoint{ID: r.ID, Confidence: r.Actual.Confidence, Correct: right}
}
