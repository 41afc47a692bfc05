package telemetry

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/caprouter/caprouter/contract"
)

// otherValue is the label value for values that a label does not define.
const otherValue = "other"

// Values of the label "result".
const (
	resultOK     = "ok"
	resultFailed = "failed"
)

// outcomeValues are the statuses of responses and the codes of errors.
func outcomeValues() []string {
	return slices.Concat(
		toStrings(
			contract.StatusAccepted, contract.StatusRunning, contract.StatusCompleted,
			contract.StatusPartial, contract.StatusFailed, contract.StatusClarify,
			contract.StatusUnsupported, contract.StatusProposed, contract.StatusCancelled,
		),
		toStrings(
			contract.CodeInvalidRequest, contract.CodePayloadTooLarge, contract.CodeUnsupportedMediaType,
			contract.CodeUnauthenticated, contract.CodeForbidden, contract.CodeNotFound,
			contract.CodeMethodNotAllowed, contract.CodeConflict, contract.CodeResultExpired, contract.CodePreconditionFailed,
			contract.CodeNoEligibleAgent, contract.CodeRateLimited, contract.CodeQuotaExceeded,
			contract.CodeOverloaded,
			contract.CodeAuditUnavailable, contract.CodeInternal,
		),
	)
}

func sourceValues() []string {
	return toStrings(contract.SourceLLM, contract.SourceLexical, contract.SourceCache, contract.SourcePinned)
}

func policyValues() []string { return []string{"A", "B", "C"} }

func verdictValues() []string { return toStrings(contract.VerdictCorrect, contract.VerdictMisroute) }

func taskStatuses() []string {
	return toStrings(contract.TaskSuccess, contract.TaskPartial, contract.TaskFailure, contract.TaskFailed, contract.TaskCancelled)
}

// Values of the label "delivery".
const (
	leaseFirst = "first"
	leaseAgain = "again"
)

func leaseDeliveries() []string { return []string{leaseFirst, leaseAgain} }

// Values of the label "result" of throttled requests.
const (
	throttleDelayed  = "delayed"
	throttleRejected = "rejected"
)

func throttleResults() []string { return []string{throttleDelayed, throttleRejected} }

func resultValues() []string { return []string{resultOK, resultFailed} }

// Values of the label "result" of spans.
const (
	spanExported = "exported"
	spanFailed   = resultFailed
	spanDropped  = "dropped"
)

func spanResults() []string { return []string{spanExported, spanFailed, spanDropped} }

func toStrings[S ~string](values ...S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// labelOptions maps the values of one label to the options of a recording. The
// options are created once, because creating an attribute set takes several
// allocations and more time than the recording.
type labelOptions[O any] struct {
	known map[string][]O
	other []O
}

func newLabelOptions[O any](name string, values []string, option func(metric.MeasurementOption) O) labelOptions[O] {
	newOption := func(value string) []O {
		return []O{option(metric.WithAttributeSet(attribute.NewSet(attribute.String(name, value))))}
	}
	l := labelOptions[O]{known: make(map[string][]O, len(values)), other: newOption(otherValue)}
	for _, v := range values {
		l.known[v] = newOption(v)
	}
	return l
}

// forValue returns the options of the value, or of "other" if it is unknown.
func (l *labelOptions[O]) forValue(value string) []O {
	if o, ok := l.known[value]; ok {
		return o
	}
	return l.other
}
