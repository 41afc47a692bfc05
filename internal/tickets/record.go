package tickets

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Limits of one ticket.
const (
	maxExamples = 20
	maxCallers  = 100
	maxDays     = 30
	maxNames    = 20 // distinct intents, domains, locales
	maxRecent   = 64 // ids of requests that are counted already

	maxPromptBytes = 500  // bytes
	maxTitleLength = 80   // characters
	maxNoteLength  = 1000 // characters
)

// recordVersion is the version of the stored format.
const recordVersion = 1

// ticketRecord is a ticket as stored: the public ticket and internal state. Its
// methods are pure. One goroutine owns a record.
type ticketRecord struct {
	Version   int             `json:"version"`
	Ticket    contract.Ticket `json:"ticket"`
	Issuer    string          `json:"issuer,omitempty"` // issuer of its callers, if they have no tenant
	Payer     quota.Owner     `json:"payer"`            // whose share of the store it uses: that of its first caller
	TitleFrom string          `json:"title_from"`       // the request with the text of the title
	Salt      string          `json:"salt"`
	Callers   []string        `json:"callers"` // hashes
	Kinds     map[string]int  `json:"kinds"`   // kinds of personal data, with counts
	Recent    []string        `json:"recent"`  // ids of requests, newest first
	Pending   []webhookNotice `json:"pending"` // notices not delivered yet
}

// webhookNotice is a notice for the webhook, stored in the ticket until it is
// delivered (outbox).
type webhookNotice struct {
	ID    string    `json:"id"` // the same for every attempt
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	Count int       `json:"count"`           // requests in the ticket then
	Owner string    `json:"owner,omitempty"` // the process that delivers it; "" = any
}

// Events of a notice.
const (
	eventOpened = "ticket.opened"
	eventGrown  = "ticket.grown"
	eventClosed = "ticket.closed"
)

// newRecord returns an empty ticket.
func newRecord(id string, d *Demand) *ticketRecord {
	of := d.owner()
	return &ticketRecord{
		Version: recordVersion, Issuer: of.issuer, Payer: payerOf(d.Unmet.Caller),
		Ticket: contract.Ticket{
			TicketID: id, Tenant: of.tenant, Status: contract.TicketOpen,
			PerDay: []contract.DayCount{}, Examples: []contract.TicketExample{}, Nearest: []contract.NearestMiss{},
			Intents: map[string]int{}, Domains: map[string]int{}, Reasons: map[string]int{}, Locales: map[string]int{},
			Requirements: []string{}, Risks: []string{},
		},
		Salt: rand.Text(), Kinds: map[string]int{},
	}
}

func encodeRecord(_ string, r *ticketRecord) ([]byte, error) { return strictjson.Marshal(r) }

func decodeRecord(id string, value []byte) (*ticketRecord, error) {
	var r ticketRecord
	switch err := strictjson.Unmarshal(value, &r); {
	case err != nil:
		return nil, err
	case r.Version != recordVersion:
		return nil, fmt.Errorf("format version %d, want %d", r.Version, recordVersion)
	case r.Ticket.TicketID != id:
		return nil, fmt.Errorf("it is the record of ticket %.80q", r.Ticket.TicketID)
	}
	t := &r.Ticket
	for _, counts := range []*map[string]int{&t.Intents, &t.Domains, &t.Reasons, &t.Locales, &r.Kinds} {
		if *counts == nil {
			*counts = map[string]int{}
		}
	}
	return &r, nil
}

// owner returns the owner. Records of an earlier version have no issuer.
func (r *ticketRecord) owner() ticketOwner {
	return ticketOwner{tenant: r.Ticket.Tenant, issuer: r.Issuer}
}

func (r *ticketRecord) isOpen() bool { return r.Ticket.Status == contract.TicketOpen }

// hasRequest reports whether the request was counted recently, so that a request
// that is resumed after a crash does not count twice.
func (r *ticketRecord) hasRequest(requestID string) bool {
	return requestID != "" && slices.Contains(r.Recent, requestID)
}

// addRequest counts the request, which has this similarity to the ticket, and
// updates the suggestion.
func (r *ticketRecord) addRequest(d *Demand, similarity float64, now time.Time) {
	t, prompt := &r.Ticket, promptExcerpt(d.Unmet.Prompt)
	now = now.UTC()
	if t.Count == 0 {
		t.CreatedAt, similarity = now, 1
		r.setTitle(d.RequestID, prompt)
	}
	t.Count++
	t.LastAt = now
	r.countDay(now)
	r.countCaller(d.Unmet.Caller)
	clf := &d.Unmet.Decision.Classification
	incrementCount(t.Intents, clf.Intent)
	for _, domain := range clf.Domains {
		incrementCount(t.Domains, domain)
	}
	incrementCount(t.Reasons, countedReason(d.Unmet))
	incrementCount(t.Locales, d.Locale)
	for _, kind := range d.DataClasses {
		incrementCount(r.Kinds, kind)
	}
	if d.RequestID != "" {
		r.Recent = slices.Insert(r.Recent, 0, d.RequestID)
		r.Recent = r.Recent[:min(len(r.Recent), maxRecent)]
	}
	if !slices.ContainsFunc(t.Examples, func(e contract.TicketExample) bool { return e.Prompt == prompt }) {
		t.Examples = slices.Insert(t.Examples, 0, contract.TicketExample{
			RequestID: d.RequestID, At: now, Prompt: prompt, Similarity: roundSimilarity(similarity),
		})
		t.Examples = t.Examples[:min(len(t.Examples), maxExamples)]
	}
	t.NearestReading = nil // that of the request replaces it
	s := r.updateSuggestion(d.Unmet)
	t.Nearest, t.NearestReading = s.Nearest, s.NearestReading
}

// updateSuggestion updates the stored suggestion, which is for readers that may see
// every agent, and returns it.
func (r *ticketRecord) updateSuggestion(u *fallback.Unmet) fallback.Suggestion {
	known, decision := *u, *u.Decision
	known.Caller, known.Decision = &contract.Caller{AllAgents: true}, &decision
	decision.Candidates = append(slices.Clone(decision.Candidates), forbiddenAgents(u)...)
	s := fallback.Propose(&known, &r.Ticket, r.dataKinds())
	r.Ticket.SuggestedYAML, r.Ticket.Requirements, r.Ticket.Risks = s.SuggestedYAML, s.Requirements, s.Risks
	return s
}

// forbiddenAgents returns the agents that would serve the request if its caller were permitted to
// use them: no other gate is in their way.
func forbiddenAgents(u *fallback.Unmet) (list []contract.Candidate) {
	for _, c := range u.Decision.Hidden {
		if len(c.Gates) == 1 {
			list = append(list, c)
		}
	}
	return list
}

// countedReason returns why no agent may serve the request. The response states that no agent
// fits, also if one does that the caller may not use.
func countedReason(u *fallback.Unmet) string {
	if u.Reason == fallback.ReasonNoMatch && len(forbiddenAgents(u)) > 0 {
		return fallback.ReasonNotEntitled
	}
	return u.Reason
}

// concealForbidden returns the reasons for a reader that may not know the agents that others may
// not use.
func concealForbidden(reasons map[string]int) map[string]int {
	n := reasons[fallback.ReasonNotEntitled]
	if n == 0 {
		return reasons
	}
	concealed := maps.Clone(reasons)
	delete(concealed, fallback.ReasonNotEntitled)
	concealed[fallback.ReasonNoMatch] += n
	return concealed
}

// refreshSuggestion updates the suggestion without a request, from the last known
// registry and the near misses of the ticket.
func (r *ticketRecord) refreshSuggestion(seen *fallback.Unmet) {
	u := fallback.Unmet{Decision: &contract.Decision{Classification: contract.Classification{Intent: contract.Unknown}}}
	if seen != nil {
		u.Catalogue = seen.Catalogue
	}
	u.Decision.Candidates = nearestCandidates(&r.Ticket)
	r.updateSuggestion(&u)
}

func (r *ticketRecord) dataKinds() []string { return slices.Sorted(maps.Keys(r.Kinds)) }

func (r *ticketRecord) setTitle(requestID, text string) {
	text = plaintext.SingleLine(text)
	if runes := []rune(text); len(runes) > maxTitleLength {
		text = string(runes[:maxTitleLength-1]) + "…"
	}
	r.TitleFrom, r.Ticket.Title = requestID, text
}

func (r *ticketRecord) countDay(now time.Time) {
	t, today := &r.Ticket, now.Format(time.DateOnly)
	at, found := slices.BinarySearchFunc(t.PerDay, today, func(d contract.DayCount, day string) int { return strings.Compare(d.Day, day) })
	if !found {
		t.PerDay = slices.Insert(t.PerDay, at, contract.DayCount{Day: today})
	}
	t.PerDay[at].Count++
	first := now.AddDate(0, 0, 1-maxDays).Format(time.DateOnly)
	t.PerDay = slices.DeleteFunc(t.PerDay, func(d contract.DayCount) bool { return d.Day < first && d.Day != today })
	t.PerDay = t.PerDay[max(0, len(t.PerDay)-maxDays):]
}

func (r *ticketRecord) countCaller(c *contract.Caller) {
	name := ""
	if c != nil {
		name = c.Subject
		if c.Issuer != "" {
			name += "\x00" + c.Issuer
		}
	}
	sum := sha256.Sum256([]byte(r.Salt + "\x00" + name))
	hash := base64.RawURLEncoding.EncodeToString(sum[:12])
	if len(r.Callers) < maxCallers && !slices.Contains(r.Callers, hash) {
		r.Callers = append(r.Callers, hash)
	}
	r.Ticket.Callers = len(r.Callers)
}

// closeTicket closes the ticket and reports whether it was open.
func (r *ticketRecord) closeTicket(note string, now time.Time) bool {
	if !r.isOpen() {
		return false
	}
	now = now.UTC()
	r.Ticket.Status, r.Ticket.ClosedAt, r.Ticket.Note = contract.TicketClosed, &now, note
	return true
}

// eraseRequest removes the text of a request, and remembers its id. It reports whether the
// ticket is of use without the text.
func (r *ticketRecord) eraseRequest(requestID string) (useful bool) {
	t := &r.Ticket
	t.Examples = slices.DeleteFunc(t.Examples, func(e contract.TicketExample) bool { return e.RequestID == requestID })
	if !r.hasRequest(requestID) {
		r.Recent = append(r.Recent, requestID)
	}
	if r.TitleFrom == requestID {
		if len(t.Examples) > 0 {
			oldest := &t.Examples[len(t.Examples)-1]
			r.setTitle(oldest.RequestID, oldest.Prompt)
		} else {
			r.TitleFrom, t.Title = "", "(erased)"
		}
	}
	return len(t.Examples) > 0 || t.Count > 1
}

// forgetRequest removes the id of a request.
func (r *ticketRecord) forgetRequest(requestID string) {
	r.Recent = slices.DeleteFunc(r.Recent, func(id string) bool { return id == requestID })
}

// addNotice adds a notice for the webhook.
func (r *ticketRecord) addNotice(n webhookNotice) {
	n.Count = r.Ticket.Count
	r.Pending = append(r.Pending, n)
}

// findNotice returns the index of a pending notice, or -1.
func (r *ticketRecord) findNotice(id string) int {
	return slices.IndexFunc(r.Pending, func(n webhookNotice) bool { return n.ID == id })
}

// isMilestone reports whether a count is 10, 100, 1,000 …
func isMilestone(count int) bool {
	for count >= 10 && count%10 == 0 {
		count /= 10
		if count == 1 {
			return true
		}
	}
	return false
}

// exampleTexts returns the texts by which similar requests are found.
func (r *ticketRecord) exampleTexts() []string {
	texts := make([]string, len(r.Ticket.Examples))
	for i := range texts {
		texts[i] = r.Ticket.Examples[i].Prompt
	}
	return texts
}

// incrementCount counts a name, unless the map is full.
func incrementCount(of map[string]int, name string) {
	if _, known := of[name]; name != "" && (known || len(of) < maxNames) {
		of[name]++
	}
}

// promptExcerpt returns the stored part of a prompt: valid UTF-8, cut between two
// characters.
func promptExcerpt(prompt string) string {
	prompt = strings.ToValidUTF8(prompt, "�")
	if len(prompt) <= maxPromptBytes {
		return prompt
	}
	end := maxPromptBytes
	for !utf8.RuneStart(prompt[end]) {
		end--
	}
	return prompt[:end]
}

func roundSimilarity(similarity float64) float64 { return math.Round(similarity*1000) / 1000 }
