package contract

import "time"

// Proposal is the answer of policy C: the unmet request is recorded in a ticket
// that similar requests share.
type Proposal struct {
	TicketID string `json:"ticket_id,omitempty"` // "" for a dry run, which stores nothing
	Joined   bool   `json:"joined"`              // the ticket existed before
	Count    int    `json:"count"`               // requests in the ticket, including this one
	// Similarity to the nearest open ticket, from 0 to 1. A request with at
	// least Threshold joins it.
	Similarity    float64  `json:"similarity"`
	Threshold     float64  `json:"threshold"`
	Detail        string   `json:"detail"`
	SuggestedYAML string   `json:"suggested_yaml"` // a valid registry file
	Requirements  []string `json:"requirements"`
	Risks         []string `json:"risks"`
	// NearestReading is the agent that may serve the request already.
	NearestReading *NearestReading `json:"nearest_reading,omitempty"`
}

// TicketStatus is the state of a Ticket.
type TicketStatus string

// Statuses of a Ticket.
const (
	TicketOpen   TicketStatus = "open"
	TicketClosed TicketStatus = "closed"
)

// Ticket groups similar requests that no agent could serve. It shows which
// agent is missing and how often it is needed. All texts are masked.
type Ticket struct {
	TicketID  string       `json:"ticket_id"`
	Tenant    string       `json:"tenant,omitempty"`
	Status    TicketStatus `json:"status"`
	Title     string       `json:"title"` // of the first request
	CreatedAt time.Time    `json:"created_at"`
	LastAt    time.Time    `json:"last_at"` // of the newest request in it
	ClosedAt  *time.Time   `json:"closed_at,omitempty"`
	Note      string       `json:"note,omitempty"` // by the caller who closed it
	Count     int          `json:"count"`          // requests in it
	Callers   int          `json:"callers"`        // distinct, counted up to 100
	PerDay    []DayCount   `json:"per_day"`        // the last 30 days with any, oldest first

	Intents  map[string]int  `json:"intents"`  // proposed intents with counts
	Domains  map[string]int  `json:"domains"`  // proposed domains with counts
	Reasons  map[string]int  `json:"reasons"`  // reason codes: no_match, low_confidence …
	Locales  map[string]int  `json:"locales"`  // if known
	Examples []TicketExample `json:"examples"` // distinct, newest first, at most 20
	Nearest  []NearestMiss   `json:"nearest"`  // of the newest request

	NearestReading *NearestReading `json:"nearest_reading,omitempty"` // likewise

	SuggestedYAML string   `json:"suggested_yaml"`
	Requirements  []string `json:"requirements"`
	Risks         []string `json:"risks"`
}

// TicketExample is a request of a ticket.
type TicketExample struct {
	RequestID  string    `json:"request_id"`
	At         time.Time `json:"at"`
	Prompt     string    `json:"prompt"`     // masked, at most 500 bytes
	Similarity float64   `json:"similarity"` // to the ticket when it joined; 1 for the first
}

// DayCount is the number of requests on a day (UTC).
type DayCount struct {
	Day   string `json:"day"` // 2026-01-02
	Count int    `json:"count"`
}

// TicketQuery filters tickets. Zero members select all.
type TicketQuery struct {
	Status TicketStatus
	Limit  int    // 0 = 100
	Cursor string // of the previous page
}

// TicketPage is the response of GET /api/v1/tickets.
type TicketPage struct {
	Tickets    []Ticket `json:"tickets"`
	NextCursor string   `json:"next_cursor"` // "" on the last page
}
