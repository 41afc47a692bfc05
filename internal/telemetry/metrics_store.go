package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// storeMetrics are the metrics of the store, the audit log and tickets.
type storeMetrics struct {
	records    eventCounter
	recordTime metric.Float64Histogram
	state      atomic.Pointer[func() StoreState]
	open       atomic.Pointer[func() int]
	tickets    eventCounter
	webhook    eventCounter
	trimmed    eventCounter
	tenants    atomic.Pointer[func() []TenantBytes]
}

// Values of the label "part" of caprouter_store_trimmed_early_total.
const (
	PartAudit    = "audit"
	PartRequests = "requests"
	PartSessions = "sessions"
	PartTickets  = "tickets"
	PartRuns     = "orchestrations"
	PartFeedback = "feedback"
)

// TenantBytes is what one tenant has stored.
type TenantBytes struct {
	Tenant string
	Bytes  int64
}

// Values of the labels of tickets and their webhook.
const (
	TicketOpened = "opened"
	TicketJoined = "joined"

	WebhookOK      = "ok"
	WebhookFailed  = "failed"  // retried
	WebhookExpired = "expired" // retried for a day
	WebhookGone    = "gone"    // the webhook responded 410 Gone
)

// StoreState is the current state of the store.
type StoreState struct {
	Writable  bool
	UsedBytes int64
}

func (mk *instrumentFactory) newStoreMetrics() storeMetrics {
	return storeMetrics{
		records: mk.newCounter("audit_records", "Records for the audit log, by result.", "result", resultValues()),
		tickets: mk.newCounter("tickets", "Requests recorded by fallback policy C, by whether they opened or joined a ticket.", "how", []string{TicketOpened, TicketJoined}),
		webhook: mk.newCounter("ticket_webhook", "Calls to the webhook of tickets, by outcome.", "outcome", []string{WebhookOK, WebhookFailed, WebhookExpired, WebhookGone}),
		trimmed: mk.newCounter("store_trimmed_early", "Stored values that were removed before their retention, to make room in a share of the store.",
			"part", []string{PartAudit, PartRequests, PartSessions, PartTickets, PartRuns, PartFeedback}),
		recordTime: mk.newHistogram("audit_append_duration", "Time until a batch of records of the audit log was durable."),
	}
}

func (mk *instrumentFactory) addStoreGauges(m *Metrics) {
	mk.newGauge("store_writable", "1 while the store accepts writes, otherwise 0.", m.storeWritable)
	mk.newGauge("store_used_bytes", "Bytes the store holds on disk.", m.storeUsedBytes)
	mk.newGaugeByLabel("store_tenant_bytes", "Bytes that the tenants with the most have stored.", "tenant", m.observeTenants)
	mk.newGauge("requests_open", "Asynchronous requests that have not ended.", m.openRequests)
}

// RecordAuditWrite records a batch of records of the audit log.
func (m *Metrics) RecordAuditWrite(records int, took time.Duration, err error) {
	result := resultOK
	if err != nil {
		result = resultFailed
	}
	m.store.records.addN(result, records)
	m.store.recordTime.Record(context.Background(), took.Seconds())
}

// RecordTicket counts a request that fallback policy C recorded.
func (m *Metrics) RecordTicket(how string) {
	m.store.tickets.add(how)
}

// RecordWebhook counts a call to the webhook of tickets.
func (m *Metrics) RecordWebhook(outcome string) {
	m.store.webhook.add(outcome)
}

// ObserveStore sets the function that returns the state of the store. It is called
// at each scrape, and must be fast and safe for concurrent use.
func (m *Metrics) ObserveStore(state func() StoreState) {
	m.store.state.Store(&state)
}

// RecordEarlyRemoval counts values that were removed before their retention.
func (m *Metrics) RecordEarlyRemoval(part string, values int) {
	m.store.trimmed.addN(part, values)
}

// ObserveTenants sets the function that returns the tenants with the most stored
// bytes, at most ten, because each is a value of a label. It is called at each scrape.
func (m *Metrics) ObserveTenants(heaviest func() []TenantBytes) {
	m.store.tenants.Store(&heaviest)
}

func (m *Metrics) observeTenants(observe func(value string, n int64)) {
	if heaviest := m.store.tenants.Load(); heaviest != nil {
		for _, t := range (*heaviest)() {
			observe(t.Tenant, t.Bytes)
		}
	}
}

// ObserveOpen sets the function that returns the number of asynchronous requests
// that have not ended. It is called at each scrape.
func (m *Metrics) ObserveOpen(open func() int) {
	m.store.open.Store(&open)
}

func (m *Metrics) currentStoreState() StoreState {
	if state := m.store.state.Load(); state != nil {
		return (*state)()
	}
	return StoreState{}
}

func (m *Metrics) storeUsedBytes() int64 { return m.currentStoreState().UsedBytes }

func (m *Metrics) storeWritable() int64 {
	if m.currentStoreState().Writable {
		return 1
	}
	return 0
}

func (m *Metrics) openRequests() int64 {
	if open := m.store.open.Load(); open != nil {
		return int64((*open)())
	}
	return 0
}
