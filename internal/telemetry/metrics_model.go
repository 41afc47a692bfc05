package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// modelMetrics tell how the language model does.
type modelMetrics struct {
	calls    counter
	callTime timer
	tokens   counter
	standIns counter
	breaker  atomic.Pointer[func() bool]
}

// Values of the label "kind" of the tokens.
const (
	tokensInput    = "input"
	tokensOutput   = "output"
	tokensThinking = "thinking"
)

func (mk *maker) model() modelMetrics {
	return modelMetrics{
		calls:    mk.counter("llm_calls", "Calls to the language model, by how they ended.", "outcome", append(llm.Reasons(), contract.OutcomeOK, llm.OutcomeCancelled)),
		callTime: mk.timer("llm_call_duration", "Time one call to the language model took, retries included, by what it was for.", "purpose", purposes()),
		tokens:   mk.counter("llm_tokens", "Tokens the language model read (input) and wrote (output, of which thinking).", "kind", []string{tokensInput, tokensOutput, tokensThinking}),
		standIns: mk.counter("classify_stand_ins", "Classifications by the lexical classifier because the model's could not be had, by the reason.", "reason", llm.Reasons()),
	}
}

func purposes() []string {
	return texts(contract.PurposeClassify, contract.PurposeRepair, contract.PurposeMoreTokens, contract.PurposeAnswer)
}

// ModelCall records a call to the language model: what for, how it ended
// (contract.OutcomeOK, llm.OutcomeCancelled or a reason), what it cost and how
// long it took; 0 for one that was refused here and never sent.
func (m *Metrics) ModelCall(purpose contract.CallPurpose, outcome string, tokens contract.Tokens, took time.Duration) {
	if m == nil {
		return
	}
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
	CascadeNoAnswer  = "no_answer" // the model was asked in vain
)

func cascadeOutcomes() []string {
	return []string{CascadeSpared, CascadeAgreed, CascadeDisagreed, CascadeNoAnswer}
}

// Cascade counts a request in the mode cascade, with the confidence of the
// lexical classifier.
func (m *Metrics) Cascade(outcome string, confidence float64) {
	if m == nil {
		return
	}
	m.cascade.add(outcome)
	if outcome == CascadeSpared {
		m.sparedSure.Record(context.Background(), confidence)
	}
}

// StandIn counts a classification that the lexical classifier made because the
// model's could not be had.
func (m *Metrics) StandIn(reason string) {
	if m == nil {
		return
	}
	m.model.standIns.add(reason)
}

// ObserveModel has open called whenever the metrics are read: whether the model
// is left alone because it failed repeatedly. It must be quick and safe for
// concurrent use.
func (m *Metrics) ObserveModel(open func() bool) {
	if m == nil {
		return
	}
	m.model.breaker.Store(&open)
}

func (m *Metrics) modelBreakerNow() int64 {
	if open := m.model.breaker.Load(); open != nil && (*open)() {
		return 1
	}
	return 0
}

func (c *counter) addN(value string, n int) {
	c.instrument.Add(context.Background(), int64(n), c.label.options(value)...)
}
