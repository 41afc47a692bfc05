package telemetry

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/caprouter/caprouter/contract"
)

// mcpMetrics are the metrics of the MCP gateway.
type mcpMetrics struct {
	calls    metric.Int64Counter
	callTime metric.Float64Histogram
	tools    toolLabels
	reloads  eventCounter
	stale    atomic.Bool
	servers  atomic.Pointer[func() map[string]int]
}

// actionOutcomes are the outcomes of calls of tools that exist: those of the gateway, and
// the codes of errors. Codes that a tool reports itself count as TOOL_ERROR.
func actionOutcomes() []string {
	return []string{
		"OK", "CANCELLED", contract.ActionInvalidInput, contract.ActionForbidden, contract.ActionRateLimited, contract.ActionQuarantined,
		contract.ActionNotRecorded, contract.ActionUnavailable, contract.ActionTimeout, contract.ActionOutcomeUnknown, contract.ActionFailed,
		contract.ActionBadResult,
	}
}

// ToolOutcome returns the outcome of a call of a tool if it is one of those that the
// gateway defines, and the code of a failed tool otherwise.
func ToolOutcome(outcome string) string {
	if slices.Contains(actionOutcomes(), outcome) {
		return outcome
	}
	return contract.ActionFailed
}

func (mk *instrumentFactory) newMCPMetrics() mcpMetrics {
	calls, err := mk.meter.Int64Counter("mcp_calls", metric.WithDescription("Calls of tools of MCP servers, by server, tool and outcome."))
	mk.addError("mcp_calls", err)
	return mcpMetrics{
		calls: calls, tools: toolLabels{known: map[toolLabel]*toolOptions{}},
		callTime: mk.newHistogram("mcp_call_duration", "Time of a call of a tool, including all attempts, by server."),
		reloads:  mk.newCounter("mcp_registry_reloads", "Loads of the registry file of MCP servers, by result.", "result", resultValues()),
	}
}

func (mk *instrumentFactory) addMCPGauges(m *Metrics) {
	mk.newGauge("mcp_registry_stale", "1 while the last load of the registry file of MCP servers failed and an older one is in use.", m.mcpRegistryStale)
	mk.newGaugeByLabel("mcp_servers", "MCP servers, by status.", "status", m.observeMCPServers)
}

// toolLabels holds the labels of tools. Their number is bounded, because servers name
// their tools: further ones count as "other".
type toolLabels struct {
	mu    sync.Mutex
	known map[toolLabel]*toolOptions
}

type toolLabel struct{ server, tool string }

// toolOptions are the options of recordings about one tool.
type toolOptions struct {
	outcomes map[string][]metric.AddOption
	server   []metric.RecordOption
}

const maxToolLabels = 500

func newToolOptions(l toolLabel) *toolOptions {
	o := &toolOptions{outcomes: map[string][]metric.AddOption{}}
	for _, outcome := range actionOutcomes() {
		o.outcomes[outcome] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(
			attribute.String("server", l.server), attribute.String("tool", l.tool), attribute.String("outcome", outcome)))}
	}
	o.server = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("server", l.server)))}
	return o
}

func (t *toolLabels) options(l toolLabel) *toolOptions {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.known[l]; o != nil {
		return o
	}
	if len(t.known) >= maxToolLabels {
		if l = (toolLabel{otherValue, otherValue}); t.known[l] != nil {
			return t.known[l]
		}
	}
	o := newToolOptions(l)
	t.known[l] = o
	return o
}

// RecordToolCall records a call of a tool that exists. outcome is "OK", "CANCELLED" or
// the code of the error.
func (m *Metrics) RecordToolCall(server, tool, outcome string, took time.Duration) {
	o := m.mcp.tools.options(toolLabel{server, tool})
	m.mcp.calls.Add(context.Background(), 1, o.outcomes[ToolOutcome(outcome)]...)
	m.mcp.callTime.Record(context.Background(), took.Seconds(), o.server...)
}

// RecordMCPRegistryLoad records an attempt to load the registry file of MCP servers. If ok is
// false, the old servers remain in use.
func (m *Metrics) RecordMCPRegistryLoad(ok bool) {
	m.mcp.stale.Store(!ok)
	if ok {
		m.mcp.reloads.add(resultOK)
	} else {
		m.mcp.reloads.add(resultFailed)
	}
}

// ObserveMCPServers sets the function that returns the number of servers by status. It is
// called at each scrape.
func (m *Metrics) ObserveMCPServers(count func() map[string]int) {
	m.mcp.servers.Store(&count)
}

func (m *Metrics) mcpRegistryStale() int64 {
	if m.mcp.stale.Load() {
		return 1
	}
	return 0
}

func (m *Metrics) observeMCPServers(observe func(value string, n int64)) {
	count := m.mcp.servers.Load()
	if count == nil || *count == nil {
		return
	}
	for status, n := range (*count)() {
		observe(status, int64(n))
	}
}
