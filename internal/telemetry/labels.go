package telemetry

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/caprouter/caprouter/contract"
)

// other is the label value of everything a label set does not name.
const other = "other"

// Values of the label "result".
const (
	resultOK     = "ok"
	resultFailed = "failed"
)

// outcomes are the ways a request ends: in an answer or in an error.
func outcomes() []string {
	return slices.Concat(
		texts(
			contract.StatusAccepted, contract.StatusRunning, contract.StatusCompleted,
			contract.StatusPartial, contract.StatusFailed, contract.StatusClarify,
			contract.StatusUnsupported, contract.StatusProposed, contract.StatusCancelled,
		),
		texts(
			contract.CodeInvalidRequest, contract.CodePayloadTooLarge, contract.CodeUnsupportedMediaType,
			contract.CodeUnauthenticated, contract.CodeForbidden, contract.CodeNotFound,
			contract.CodeMethodNotAllowed, contract.CodeConflict, contract.CodePreconditionFailed,
			contract.CodeNoEligibleAgent, contract.CodeRateLimited, contract.CodeOverloaded,
			contract.CodeAuditUnavailable, contract.CodeInternal,
		),
	)
}

func sources() []string {
	return texts(contract.SourceLLM, contract.SourceLexical, contract.SourceCache, contract.SourcePinned)
}

func policies() []string { return []string{"A", "B", "C"} }

func taskStatuses() []string {
	return texts(contract.TaskSuccess, contract.TaskPartial, contract.TaskFailure, contract.TaskFailed, contract.TaskCancelled)
}

func results() []string { return []string{resultOK, resultFailed} }

func texts[S ~string](values ...S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// labelled maps the values of one label to the options that carry them. The
// options are made once: making an attribute set costs several allocations and
// more time than the recording itself.
type labelled[O any] struct {
	known map[string][]O
	other []O
}

func label[O any](name string, values []string, option func(metric.MeasurementOption) O) labelled[O] {
	make1 := func(value string) []O {
		return []O{option(metric.WithAttributeSet(attribute.NewSet(attribute.String(name, value))))}
	}
	l := labelled[O]{known: make(map[string][]O, len(values)), other: make1(other)}
	for _, v := range values {
		l.known[v] = make1(v)
	}
	return l
}

// options returns those of the value, or of "other" for one that is not known.
func (l *labelled[O]) options(value string) []O {
	if o, ok := l.known[value]; ok {
		return o
	}
	return l.other
}
