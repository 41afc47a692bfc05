package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// storeMetrics tell how what outlives the process does.
type storeMetrics struct {
	records    counter
	recordTime metric.Float64Histogram
	state      atomic.Pointer[func() StoreState]
	open       atomic.Pointer[func() int]
	tickets    counter
	webhook    counter
}

// Values of the labels of tickets and their webhook.
const (
	TicketOpened = "opened"
	TicketJoined = "joined"

	WebhookOK      = "ok"
	WebhookFailed  = "failed"  // tried again
	WebhookExpired = "expired" // tried for a day
	WebhookGone    = "gone"    // the address wants no messages
)

// StoreState is how the store is at this moment.
type StoreState struct {
	Writable  bool
	UsedBytes int64
}

func (mk *maker) store() storeMetrics {
	return storeMetrics{
		records:    mk.counter("audit_records", "Records for the audit log, by whether they are on disk.", "result", results()),
		tickets:    mk.counter("tickets", "Requests that nobody could serve and that policy C put on record, by whether they opened a ticket.", "how", []string{TicketOpened, TicketJoined}),
		webhook:    mk.counter("ticket_webhook", "Tries to tell the webhook of tickets, by what came of them.", "outcome", []string{WebhookOK, WebhookFailed, WebhookExpired, WebhookGone}),
		recordTime: mk.histogram("audit_append_duration", "Time until a group of records for the audit log was on disk."),
	}
}

func (mk *maker) storeGauges(m *Metrics) {
	mk.gauge("store_writable", "1 while the store takes writes; without a store 0.", m.storeWritable)
	mk.gauge("store_used_bytes", "Bytes the store holds on disk.", m.storeUsed)
	mk.gauge("requests_open", "Asynchronous requests that have not ended.", m.openNow)
}

// Audited records a group of records for the audit log.
func (m *Metrics) Audited(records int, took time.Duration, err error) {
	if m == nil {
		return
	}
	result := resultOK
	if err != nil {
		result = resultFailed
	}
	m.store.records.addN(result, records)
	m.store.recordTime.Record(context.Background(), took.Seconds())
}

// Ticket counts a request that policy C put on record.
func (m *Metrics) Ticket(how string) {
	if m != nil {
		m.store.tickets.add(how)
	}
}

// Webhook counts a try to tell the webhook of a ticket.
func (m *Metrics) Webhook(outcome string) {
	if m != nil {
		m.store.webhook.add(outcome)
	}
}

// ObserveStore has state called whenever the metrics are read. It must be quick
// and safe for concurrent use. A later call replaces it.
func (m *Metrics) ObserveStore(state func() StoreState) {
	if m != nil {
		m.store.state.Store(&state)
	}
}

// ObserveOpen has open called whenever the metrics are read, for the number of
// asynchronous requests that have not ended. A later call replaces it.
func (m *Metrics) ObserveOpen(open func() int) {
	if m != nil {
		m.store.open.Store(&open)
	}
}

func (m *Metrics) storeNow() StoreState {
	if state := m.store.state.Load(); state != nil {
		return (*state)()
	}
	return StoreState{}
}

func (m *Metrics) storeUsed() int64 { return m.storeNow().UsedBytes }

func (m *Metrics) storeWritable() int64 {
	if m.storeNow().Writable {
		return 1
	}
	return 0
}

func (m *Metrics) openNow() int64 {
	if open := m.store.open.Load(); open != nil {
		return int64((*open)())
	}
	return 0
}
