package telemetry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"

	"github.com/caprouter/caprouter/contract"
)

// Metrics contains the metrics. Its methods may be called from any goroutine, do not
// allocate. Arguments that become a label are constants of the program, never texts
// of a caller; unknown values count as "other".
type Metrics struct {
	requests         eventCounter
	throttled        eventCounter
	fallbacks        eventCounter
	tasks            eventCounter
	taskLeases       eventCounter
	agentTokens      eventCounter
	reloads          eventCounter
	requestTime      metric.Float64Histogram
	classifyTime     durationTimer
	agentTime        metric.Float64Histogram
	model            modelMetrics
	store            storeMetrics
	cascade          eventCounter
	sparedConfidence metric.Float64Histogram
	mcp              mcpMetrics
	runs             runMetrics
	feedback         eventCounter
	spans            eventCounter

	current gaugeValues
}

// gaugeValues are read at each scrape.
type gaugeValues struct {
	inFlight atomic.Int64
	agents   atomic.Int64
	stale    atomic.Bool
	breakers atomic.Pointer[func() int]
}

// meterName is the name of the OpenTelemetry meter.
const meterName = "github.com/caprouter/caprouter"

// DiscardMetrics returns Metrics that discard everything.
func DiscardMetrics() *Metrics {
	m, _ := newInstruments(noop.NewMeterProvider()) // instruments that do nothing have no errors
	return m
}

// newMetrics creates all instruments and registers them.
func newMetrics(registry prometheus.Registerer) (*Metrics, error) {
	exporter, err := otelprom.New(
		otelprom.WithRegisterer(registry),
		otelprom.WithNamespace("caprouter"),
		otelprom.WithoutScopeInfo(),
		otelprom.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("start the metrics exporter: %w", err)
	}
	provider := sdk.NewMeterProvider(
		sdk.WithReader(exporter),
		sdk.WithExemplarFilter(exemplar.AlwaysOffFilter),
	)
	return newInstruments(provider)
}

func newInstruments(provider metric.MeterProvider) (*Metrics, error) {
	mk := instrumentFactory{meter: provider.Meter(meterName)}
	m := &Metrics{
		requests:         mk.newCounter("requests", "Requests, by the status or the error code of the response.", "outcome", outcomeValues()),
		throttled:        mk.newCounter("throttled_requests", "Requests of the tenants that send the most, while the processors are overloaded: delayed or rejected.", "result", throttleResults()),
		requestTime:      mk.newHistogram("request_duration", "Time from the arrival of a request to its response."),
		classifyTime:     mk.newTimer("classify_duration", "Time of a classification, by its source.", "source", sourceValues()),
		fallbacks:        mk.newCounter("fallback", "Requests without an eligible agent, by fallback policy.", "policy", policyValues()),
		tasks:            mk.newCounter("tasks", "Tasks dispatched to agents, by status.", "status", taskStatuses()),
		taskLeases:       mk.newCounter("task_leases", "Tasks given to agents that pull them, by delivery: first, or again after a lease expired.", "delivery", leaseDeliveries()),
		agentTokens:      mk.newCounter("agent_tokens", "Tokens that agents report in the metric tokens of their results, by status of the task.", "status", taskStatuses()),
		agentTime:        mk.newHistogram("agent_call_duration", "Time from the dispatch of a task to its end, including all attempts."),
		reloads:          mk.newCounter("registry_reloads", "Loads of the registry, by result.", "result", resultValues()),
		model:            mk.newModelMetrics(),
		store:            mk.newStoreMetrics(),
		mcp:              mk.newMCPMetrics(),
		runs:             mk.newRunMetrics(),
		feedback:         mk.newCounter("feedback", "Verdicts of callers and operators on the routing of requests: correct or misroute.", "verdict", verdictValues()),
		cascade:          mk.newCounter("cascade", "Requests in the mode cascade: the model was not called (spared), or it was called and agreed with the lexical classifier or not.", "outcome", cascadeOutcomes()),
		sparedConfidence: mk.newShareHistogram("cascade_spared_confidence", "Confidence of lexical classifications without a call to the model; their mean is their expected precision."),
		spans:            mk.newCounter("spans", "Spans of recorded traces, by result: exported, failed if the receiver did not accept them, dropped if too many waited.", "result", spanResults()),
	}
	mk.newGauge("requests_in_flight", "Requests in flight.", m.current.inFlight.Load)
	mk.newGauge("registry_agents", "Agents in the registry in use.", m.current.agents.Load)
	mk.newGauge("registry_stale", "1 while the last load of the registry failed and an older one is in use.", m.registryStale)
	mk.newGauge("breakers_open", "Agents whose breaker has opened, without a success since.", m.openBreakers)
	mk.newGauge("llm_breaker_open", "1 while the language model is not called because it failed repeatedly.", m.modelBreakerOpen)
	mk.addStoreGauges(m)
	mk.addMCPGauges(m)
	mk.addRunGauges(m)
	return m, mk.err
}

// RecordRequest counts a request. outcome is the status of the response, or the code of
// the error.
func (m *Metrics) RecordRequest(outcome string, took time.Duration) {
	m.requests.add(outcome)
	m.requestTime.Record(context.Background(), took.Seconds())
}

// RecordThrottled counts a request that was delayed or rejected because its tenant sends more
// than others while the processors are overloaded.
func (m *Metrics) RecordThrottled(rejected bool) {
	result := throttleDelayed
	if rejected {
		result = throttleRejected
	}
	m.throttled.add(result)
}

// AddInFlight adds delta to the requests in flight: 1 when a request is admitted, −1
// when it has ended.
func (m *Metrics) AddInFlight(delta int) {
	m.current.inFlight.Add(int64(delta))
}

// RecordClassification records a classification by its source.
func (m *Metrics) RecordClassification(source string, took time.Duration) {
	m.classifyTime.record(source, took)
}

// RecordFallback counts a request without an eligible agent, by fallback policy (A, B or
// C).
func (m *Metrics) RecordFallback(policy string) {
	m.fallbacks.add(policy)
}

// RecordFeedback counts a verdict on the routing of a request.
func (m *Metrics) RecordFeedback(verdict contract.Verdict) {
	m.feedback.add(string(verdict))
}

// RecordTask counts a task that has ended, and records its time with one agent. After
// a failover the task is counted once for each agent.
func (m *Metrics) RecordTask(status string, took time.Duration) {
	m.tasks.add(status)
	m.agentTime.Record(context.Background(), took.Seconds())
}

// RecordTaskLease counts a task that its agent has pulled; redelivered is true if a lease of the task
// has expired before.
func (m *Metrics) RecordTaskLease(redelivered bool) {
	if redelivered {
		m.taskLeases.add(leaseAgain)
	} else {
		m.taskLeases.add(leaseFirst)
	}
}

// RecordAgentTokens counts the tokens that an agent reported for a task. Values that are no
// count are ignored.
func (m *Metrics) RecordAgentTokens(status string, tokens float64) {
	if !(tokens >= 1 && tokens <= maxAgentTokens) {
		return
	}
	m.agentTokens.addN(status, int(tokens))
}

// maxAgentTokens bounds the tokens of one task, so that a wrong number does not
// overflow the counter.
const maxAgentTokens = 1e9

// RecordRegistryLoad records an attempt to load the registry. agents is the number of
// agents in the new registry. If ok is false, the old registry remains in use.
func (m *Metrics) RecordRegistryLoad(ok bool, agents int) {
	m.current.stale.Store(!ok)
	if !ok {
		m.reloads.add(resultFailed)
		return
	}
	m.current.agents.Store(int64(agents))
	m.reloads.add(resultOK)
}

// ObserveBreakers sets the function that returns the number of agents whose circuit
// breaker is open. It is called at each scrape, and must be fast and safe for
// concurrent use. A later call replaces it.
func (m *Metrics) ObserveBreakers(open func() int) {
	m.current.breakers.Store(&open)
}

func (m *Metrics) registryStale() int64 {
	if m.current.stale.Load() {
		return 1
	}
	return 0
}

func (m *Metrics) openBreakers() int64 {
	open := m.current.breakers.Load()
	if open == nil {
		return 0
	}
	return int64((*open)())
}
