package telemetry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
)

// Metrics is what the rooms record into. Every method may be called on a nil
// *Metrics and does nothing then, from any goroutine, and allocates nothing.
// Arguments that become a label are strings of this program, never a caller's;
// one that is not known counts as "other".
type Metrics struct {
	requests     counter
	fallbacks    counter
	tasks        counter
	reloads      counter
	requestTime  metric.Float64Histogram
	classifyTime timer
	agentTime    metric.Float64Histogram
	model        modelMetrics
	store        storeMetrics
	cascade      counter
	sparedSure   metric.Float64Histogram

	// What holds now, read when somebody asks for the metrics.
	inFlight atomic.Int64
	agents   atomic.Int64
	stale    atomic.Bool
	breakers atomic.Pointer[func() int]
}

// scope names the source of the metrics to OpenTelemetry.
const scope = "github.com/caprouter/caprouter"

// newMetrics makes every instrument and has registry collect them.
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
	mk := maker{meter: provider.Meter(scope)}
	m := &Metrics{
		requests:     mk.counter("requests", "Requests answered, by the status or the error code of the answer.", "outcome", outcomes()),
		requestTime:  mk.histogram("request_duration", "Time from a request's arrival to its answer."),
		classifyTime: mk.timer("classify_duration", "Time a classification took, by what answered.", "source", sources()),
		fallbacks:    mk.counter("fallback", "Requests no agent was eligible for, by the policy that answered.", "policy", policies()),
		tasks:        mk.counter("tasks", "Tasks given to agents, by how they ended.", "status", taskStatuses()),
		agentTime:    mk.histogram("agent_call_duration", "Time from giving an agent a task to its end, all tries included."),
		reloads:      mk.counter("registry_reloads", "Loads of the registry, by whether the new one is in use.", "result", results()),
		model:        mk.model(),
		store:        mk.store(),
		cascade:      mk.counter("cascade", "Requests in the mode cascade: the model was spared, or it was asked and agreed with the lexical classifier or not.", "outcome", cascadeOutcomes()),
		sparedSure:   mk.shares("cascade_spared_confidence", "Confidence of the lexical classifications that spared the model; their mean is the precision they are expected to have."),
	}
	mk.gauge("requests_in_flight", "Requests being worked on.", m.inFlight.Load)
	mk.gauge("registry_agents", "Agents in the registry in use.", m.agents.Load)
	mk.gauge("registry_stale", "1 while the last load of the registry failed and an older one is in use.", m.staleNow)
	mk.gauge("breakers_open", "Agents that get no tasks because their breaker is open.", m.breakersNow)
	mk.gauge("llm_breaker_open", "1 while the language model is not called because it failed repeatedly.", m.modelBreakerNow)
	mk.storeGauges(m)
	return m, mk.err
}

// Request counts an answered request. outcome is the status of the answer, or
// the code of the error that took its place.
func (m *Metrics) Request(outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.add(outcome)
	m.requestTime.Record(context.Background(), took.Seconds())
}

// InFlight adds delta to the requests being worked on: 1 when one arrives, −1
// when it has been answered.
func (m *Metrics) InFlight(delta int) {
	if m == nil {
		return
	}
	m.inFlight.Add(int64(delta))
}

// Classify records a classification and which source answered.
func (m *Metrics) Classify(source string, took time.Duration) {
	if m == nil {
		return
	}
	m.classifyTime.record(source, took)
}

// Fallback counts a request that no agent was eligible for, by the policy (A,
// B or C) that answered.
func (m *Metrics) Fallback(policy string) {
	if m == nil {
		return
	}
	m.fallbacks.add(policy)
}

// TaskDone counts a task that has ended, and records how long one agent took
// over it. A task that went on to a second agent is counted once for each.
func (m *Metrics) TaskDone(status string, took time.Duration) {
	if m == nil {
		return
	}
	m.tasks.add(status)
	m.agentTime.Record(context.Background(), took.Seconds())
}

// RegistryLoaded records an attempt to load the registry. agents counts those
// of the new one; when ok is false it is not used and the old one stays.
func (m *Metrics) RegistryLoaded(ok bool, agents int) {
	if m == nil {
		return
	}
	m.stale.Store(!ok)
	if !ok {
		m.reloads.add(resultFailed)
		return
	}
	m.agents.Store(int64(agents))
	m.reloads.add(resultOK)
}

// ObserveBreakers has open called whenever the metrics are read, for the number
// of agents whose breaker is open. It must be quick and safe for concurrent
// use. A later call replaces it.
func (m *Metrics) ObserveBreakers(open func() int) {
	if m == nil {
		return
	}
	m.breakers.Store(&open)
}

func (m *Metrics) staleNow() int64 {
	if m.stale.Load() {
		return 1
	}
	return 0
}

func (m *Metrics) breakersNow() int64 {
	open := m.breakers.Load()
	if open == nil {
		return 0
	}
	return int64((*open)())
}
