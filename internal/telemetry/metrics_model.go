package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// modelMetrics are the metrics of the language model.
type modelMetrics struct {
	calls            eventCounter
	callTime         durationTimer
	tokens           eventCounter
	lexicalFallbacks eventCounter
	breaker          atomic.Pointer[func() bool]
}

// Values of the label "kind" of the tokens.
const (
	tokensInput    = "input"
	tokensOutput   = "output"
	tokensThinking = "thinking"
)

func (mk *instrumentFactory) newModelMetrics() modelMetrics {
	return modelMetrics{
		calls:            mk.newCounter("llm_calls", "Calls to the language model, by outcome.", "outcome", append(llm.Reasons(), contract.OutcomeOK, llm.OutcomeCancelled)),
		callTime:         mk.newTimer("llm_call_duration", "Time of a call to the language model, including retries, by purpose.", "purpose", purposeValues()),
		tokens:           mk.newCounter("llm_tokens", "Tokens the language model read (input) and wrote (output, of which thinking).", "kind", []string{tokensInput, tokensOutput, tokensThinking}),
		lexicalFallbacks: mk.newCounter("classify_stand_ins", "Classifications by the lexical classifier because the model failed, by reason.", "reason", llm.Reasons()),
	}
}

func purposeValues() []string {
	return toStrings(contract.PurposeClassify, contract.PurposeRepair, contract.PurposeMoreTokens, contract.PurposeAnswer,
		contract.PurposeSummarize, contract.PurposePlan, contract.PurposeVerify)
}

// RecordModelCall records a call to the language model. outcome is contract.OutcomeOK,
// llm.OutcomeCancelled or a reason. took is 0 if the call was not sent.
func (m *Metrics) RecordModelCall(purpose contract.CallPurpose, outcome string, tokens contract.Tokens, took time.Duration) {
	m.model.calls.add(outcome)
	if took > 0 {
		m.model.callTime.record(string(purpose), took)
	}
	m.model.tokens.addN(tokensInput, tokens.Input)
	m.model.tokens.addN(tokensOutput, tokens.Output)
	m.model.tokens.addN(tokensThinking, tokens.Thinking)
}

// The outcomes of the cascade.
const (
	CascadeSpared    = "spared"
	CascadeAgreed    = "agreed"
	CascadeDisagreed = "disagreed"
	CascadeNoAnswer  = "no_answer" // the model was called and failed
)

func cascadeOutcomes() []string {
	return []string{CascadeSpared, CascadeAgreed, CascadeDisagreed, CascadeNoAnswer}
}

// RecordCascade counts a request in the mode cascade, with the confidence of the
// lexical classifier.
func (m *Metrics) RecordCascade(outcome string, confidence float64) {
	m.cascade.add(outcome)
	if outcome == CascadeSpared {
		m.sparedConfidence.Record(context.Background(), confidence)
	}
}

// RecordModelFailure counts a classification by the lexical classifier because the model
// failed.
func (m *Metrics) RecordModelFailure(reason string) {
	m.model.lexicalFallbacks.add(reason)
}

// ObserveModel sets the function that reports whether the circuit breaker of the
// model is open. It is called at each scrape, and must be fast and safe for
// concurrent use.
func (m *Metrics) ObserveModel(open func() bool) {
	m.model.breaker.Store(&open)
}

func (m *Metrics) modelBreakerOpen() int64 {
	if open := m.model.breaker.Load(); open != nil && (*open)() {
		return 1
	}
	return 0
}

func (c *eventCounter) addN(value string, n int) {
	c.instrument.Add(context.Background(), int64(n), c.label.forValue(value)...)
}
