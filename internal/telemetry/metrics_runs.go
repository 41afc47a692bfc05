package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/caprouter/caprouter/contract"
)

// runMetrics are the metrics of orchestrations.
type runMetrics struct {
	ended    eventCounter
	duration metric.Float64Histogram
	open     atomic.Pointer[func() map[contract.OrchestrationStatus]int]
}

func runStatuses() []string {
	return toStrings(contract.OrchestrationDone, contract.OrchestrationFailed, contract.OrchestrationBlocked, contract.OrchestrationDegraded)
}

func (mk *instrumentFactory) newRunMetrics() runMetrics {
	return runMetrics{
		ended:    mk.newCounter("orchestrations", "Orchestrations that have ended, by status.", "status", runStatuses()),
		duration: mk.newHistogram("orchestration_duration", "Time from the beginning of an orchestration to its end, with that of approvals."),
	}
}

func (mk *instrumentFactory) addRunGauges(m *Metrics) {
	mk.newGaugeByLabel("orchestrations_open", "Orchestrations in the store that have not ended, by status.", "status", m.observeOpenRuns)
}

// RecordOrchestration counts an orchestration that has ended.
func (m *Metrics) RecordOrchestration(status contract.OrchestrationStatus, took time.Duration) {
	m.runs.ended.add(string(status))
	m.runs.duration.Record(context.Background(), took.Seconds())
}

// ObserveOpenRuns sets the function that returns the number of orchestrations that have not
// ended, by status. It is called at each scrape.
func (m *Metrics) ObserveOpenRuns(count func() map[contract.OrchestrationStatus]int) {
	m.runs.open.Store(&count)
}

func (m *Metrics) observeOpenRuns(observe func(value string, n int64)) {
	count := m.runs.open.Load()
	if count == nil {
		return
	}
	open := (*count)()
	for _, status := range []contract.OrchestrationStatus{contract.OrchestrationRunning, contract.OrchestrationWaiting} {
		observe(string(status), int64(open[status]))
	}
}
