package contract

import "time"

// Proposal is what policy C (003 §5) says to the caller: the demand is on
// record, in a ticket that similar requests share.
type Proposal struct {
	TicketID string `json:"ticket_id,omitempty"` // "" on a dry run: nothing is stored
	Joined   bool   `json:"joined"`              // the ticket was there before
	Count    int    `json:"count"`               // requests in it, this one included
	// Similarity is to the nearest open ticket, 0 … 1; from Threshold on a request
	// joins it.
	Similarity    float64  `json:"similarity"`
	Threshold     float64  `json:"threshold"`
	Detail        string   `json:"detail"`
	SuggestedYAML string   `json:"suggested_yaml"` // a registry that loads as it is
	Requirements  []string `json:"requirements"`
	Risks         []string `json:"risks"`
}

// TicketStatus is the state of a Ticket.
type TicketStatus string

// The statuses of a Ticket.
const (
	TicketOpen   TicketStatus = "open"
	TicketClosed TicketStatus = "closed"
)

// Ticket gathers similar requests that nobody could serve: which agent is
// missing, and how much it is missed. All texts are masked.
type Ticket struct {
	TicketID  string       `json:"ticket_id"`
	Tenant    string       `json:"tenant,omitempty"`
	Status    TicketStatus `json:"status"`
	Title     string       `json:"title"` // of the first request
	CreatedAt time.Time    `json:"created_at"`
	LastAt    time.Time    `json:"last_at"` // of the newest request in it
	ClosedAt  *time.Time   `json:"closed_at,omitempty"`
	Note      string       `json:"note,omitempty"` // of who closed it
	Count     int          `json:"count"`          // requests in it
	Callers   int          `json:"callers"`        // distinct ones, counted to 100
	PerDay    []DayCount   `json:"per_day"`        // the last 30 days with any, oldest first

	Intents  map[string]int  `json:"intents"`  // what the classifier proposed, with counts
	Domains  map[string]int  `json:"domains"`  // the same
	Reasons  map[string]int  `json:"reasons"`  // why nobody may serve them: no_match, low_confidence …
	Locales  map[string]int  `json:"locales"`  // as far as requests name one
	Examples []TicketExample `json:"examples"` // distinct ones, newest first, at most 20
	Nearest  []NearestMiss   `json:"nearest"`  // of the newest request

	SuggestedYAML string   `json:"suggested_yaml"`
	Requirements  []string `json:"requirements"`
	Risks         []string `json:"risks"`
}

// TicketExample is one request of a ticket.
type TicketExample struct {
	RequestID  string    `json:"request_id"`
	At         time.Time `json:"at"`
	Prompt     string    `json:"prompt"`     // masked, at most 500 bytes
	Similarity float64   `json:"similarity"` // to the ticket when it joined; 1 for the first
}

// DayCount is how many requests came on one day (UTC).
type DayCount struct {
	Day   string `json:"day"` // 2026-01-02
	Count int    `json:"count"`
}

// TicketQuery selects tickets; zero members select all.
type TicketQuery struct {
	Status TicketStatus
	Limit  int    // 0 = 100
	Cursor string // of the page before
}

// TicketPage is the answer of GET /api/v1/tickets.
type TicketPage struct {
	Tickets    []Ticket `json:"tickets"`
	NextCursor string   `json:"next_cursor"` // "" on the last page
}
