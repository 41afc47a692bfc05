package golden

import (
	"fmt"
	"io"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Outcome is what became of a request.
type Outcome string

// The outcomes. A report has the first five; a case may also want any of the
// fallbacks without saying which: the policy is the registry's.
const (
	Dispatch  Outcome = "dispatch"
	Clarify   Outcome = "clarify"
	FallbackA Outcome = "fallback_a"
	FallbackB Outcome = "fallback_b"
	FallbackC Outcome = "fallback_c"

	AnyFallback Outcome = "fallback" // in Expect only
)

// reportVersion is the only version of the format there is.
const reportVersion = 1

// Report is what a run came to. Equal runs have equal reports, byte by byte.
type Report struct {
	Version     int               `json:"version"`  // of this format
	Registry    string            `json:"registry"` // Snapshot.Version
	Classifier  Classifier        `json:"classifier"`
	Interrupted bool              `json:"interrupted,omitzero"` // the cases that are missing were not run
	Summary     Summary           `json:"summary"`
	Confusion   Confusion         `json:"confusion"`
	Confidences []ConfidencePoint `json:"confidences"` // in the order of the cases
	Cases       []CaseResult      `json:"cases"`       // in the order of the files
}

// Classifier is how the requests were understood.
type Classifier struct {
	Mode string `json:"mode"` // lexical, llm or cascade
	// Of the model that was asked, live or recorded; empty without one.
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	PromptVersion string `json:"prompt_version,omitempty"`
}

// Summary counts the cases.
type Summary struct {
	Planned   int            `json:"planned"` // total, and those an interruption left out
	Total     int            `json:"total"`   // that were run
	Passed    int            `json:"passed"`
	Failed    int            `json:"failed"`
	ByOutcome []OutcomeCount `json:"by_outcome"` // what happened, in the order of the constants
	ByTag     []TagCount     `json:"by_tag"`     // sorted by tag
}

// OutcomeCount is how often something was there.
type OutcomeCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// TagCount counts the cases that carry a tag.
type TagCount struct {
	Tag    string `json:"tag"`
	Total  int    `json:"total"`
	Passed int    `json:"passed"`
}

// Confusion is what was expected against what happened, over the cases that
// name it. Cells are sorted by expected, then got; cells of 0 are left out.
type Confusion struct {
	Intents []ConfusionCell `json:"intents"`
	// Agents are sets, "a + b"; a request that nobody was chosen for has its
	// outcome in their place.
	Agents []ConfusionCell `json:"agents"`
}

// ConfusionCell is one cell of a confusion matrix.
type ConfusionCell struct {
	Expected string `json:"expected"`
	Got      string `json:"got"`
	Count    int    `json:"count"`
}

// ConfidencePoint is the confidence of one classification and whether it was right: what
// a risk–coverage curve and a reliability diagram are drawn from. Cases that
// scripted their own reply are left out, as their confidence is made up.
type ConfidencePoint struct {
	ID         string  `json:"id"`
	Confidence float64 `json:"confidence"`
	// Right says that the intent is the expected one or, for a case that names
	// none, that the case passed.
	Correct bool `json:"right"`
}

// CaseResult is what became of one case.
type CaseResult struct {
	ID          string   `json:"id"`
	File        string   `json:"file"`
	Line        int      `json:"line"`
	Split       string   `json:"split,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Input       string   `json:"input"`
	Expect      Expect   `json:"expect"`
	Actual      Actual   `json:"got"`
	Passed      bool     `json:"passed"`
	Differences []string `json:"why,omitempty"` // it failed: a sentence for each difference
	// Decision is the whole decision of a case that failed.
	Decision *contract.Decision `json:"decision,omitempty"`
}

// Actual is what a run saw of one case.
type Actual struct {
	Outcome    Outcome  `json:"outcome"` // "" when the request was refused
	Agents     []string `json:"agents"`  // chosen, in the order of the subtasks
	Intent     string   `json:"intent"`
	Domains    []string `json:"domains"`
	Confidence float64  `json:"confidence"`
	Source     string   `json:"source"` // lexical, llm
	// Reason is why the registry's words stood in for the model
	// (llm_invalid_json …), else why nobody may serve the request or the caller
	// is asked (no_match, low_confidence, ambiguous, divergent …), else "".
	Reason string `json:"reason,omitempty"`
}

// WriteJSON writes the report as one line of JSON and a line break.
func WriteJSON(w io.Writer, r *Report) error {
	if err := strictjson.MarshalWrite(w, r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// ReadJSON reads what WriteJSON wrote. file names it in errors.
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
