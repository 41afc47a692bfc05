package tickets

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/store"
)

// ListQuery selects tickets.
type ListQuery struct {
	Tenant     string // whose; also "", which is that of callers without one
	Issuer     string // … whom this one vouches for
	AllTenants bool
	Status     contract.TicketStatus // "" = any
	Limit      int                   // 0 = 100, at most 1,000
	Cursor     string                // of the page before
}

// The bounds of a page.
const (
	defaultPageSize = 100
	maxPageSize     = 1000
)

// List returns a page of tickets, those opened last first. A ticket that is
// opened while somebody turns pages does not move the others.
func (d *Service) List(ctx context.Context, q ListQuery) (*contract.TicketPage, error) {
	return d.listPage(ctx, q, func(r *ticketRecord) contract.Ticket { return r.Ticket })
}

func (d *Service) listPage(ctx context.Context, q ListQuery, show func(*ticketRecord) contract.Ticket) (*contract.TicketPage, error) {
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	switch {
	case q.Limit == 0:
		q.Limit = defaultPageSize
	case q.Limit < 0, q.Limit > maxPageSize:
		return nil, invalidQuery("/limit", fmt.Sprintf("must be from 1 to %d", maxPageSize))
	}
	switch q.Status {
	case "", contract.TicketOpen, contract.TicketClosed:
	default:
		return nil, invalidQuery("/status", "must be open or closed")
	}
	of := ownerOf(&contract.Caller{Tenant: q.Tenant, Issuer: q.Issuer})
	all := d.index.listNewest(func(e *indexEntry) bool {
		return (q.AllTenants || e.of == of) && (q.Status == "" || e.status == q.Status) &&
			(after.id == "" || newestFirst(after, *e) < 0)
	})
	page := &contract.TicketPage{Tickets: []contract.Ticket{}}
	for i := range all {
		if len(page.Tickets) == q.Limit {
			page.NextCursor = encodeCursor(&all[i-1])
			break
		}
		r, err := d.loadTicket(ctx, all[i].id)
		switch {
		case errors.Is(err, store.ErrNotFound): // its age was up
			continue
		case err != nil:
			return nil, err
		}
		page.Tickets = append(page.Tickets, show(r))
	}
	return page, nil
}

// Get returns one ticket. The error wraps store.ErrNotFound when there is none.
// Whether the caller may see the ticket's tenant is for the caller of Get to say.
func (d *Service) Get(ctx context.Context, id string) (*contract.Ticket, error) {
	if !validID(id) {
		return nil, fmt.Errorf("ticket %.64q: %w", id, store.ErrNotFound)
	}
	r, err := d.loadTicket(ctx, id)
	if err != nil {
		return nil, err
	}
	return &r.Ticket, nil
}

// Close ends a ticket, with a note that says why: nothing joins it any more, and
// the next similar request opens another. One that is closed already stays as it
// is. The error wraps store.ErrNotFound when there is none.
func (d *Service) Close(ctx context.Context, id, note string) (*contract.Ticket, error) {
	if !validID(id) {
		return nil, fmt.Errorf("ticket %.64q: %w", id, store.ErrNotFound)
	}
	note = strings.TrimSpace(note)
	if n := utf8.RuneCountInString(note); n > maxNoteLength {
		return nil, invalidQuery("/note", fmt.Sprintf("is %d characters long; at most %d are taken", n, maxNoteLength))
	}
	r, err := d.updateTicket(ctx, id, func(r *ticketRecord) error {
		if !r.closeTicket(note, d.cfg.Now()) {
			return errNoChange
		}
		d.addNotice(r, eventClosed)
		return nil
	})
	if err != nil && !errors.Is(err, errNoChange) {
		return nil, err
	}
	return &r.Ticket, nil
}

// EraseRequest drops the words of a request from every ticket that holds some, open or
// closed. Counts stay: they say nothing of the request. A ticket that had nothing
// else goes.
func (d *Service) EraseRequest(ctx context.Context, requestID string) error {
	if requestID == "" {
		return nil
	}
	var ids []string
	// The bytes, not the records, because a damaged ticket may contain the request.
	err := d.cfg.Bucket.Scan(ctx, keyPrefix, func(e store.Entry) error {
		if bytes.Contains(e.Value, []byte(requestID)) {
			ids = append(ids, strings.TrimPrefix(e.Key, keyPrefix))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for the tickets of a request: %w", err)
	}
	for _, id := range ids {
		if err := d.eraseFromTicket(ctx, id, requestID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// errNothingLeft ends a change after which nothing of use would be left.
var errNothingLeft = errors.New("useless")

func (d *Service) eraseFromTicket(ctx context.Context, id, requestID string) error {
	_, err := d.updateTicket(ctx, id, func(r *ticketRecord) error {
		switch changed, useful := r.eraseRequest(requestID); {
		case !changed:
			return errNoChange
		case !useful:
			return errNothingLeft
		}
		r.refreshSuggestion(d.registry.Load())
		return nil
	})
	switch {
	case errors.Is(err, errNothingLeft):
		if err := d.table.Delete(ctx, id); err != nil {
			return fmt.Errorf("drop ticket %s: %w", id, err)
		}
		d.index.remove(id)
		return nil
	case errors.Is(err, errNoChange):
		return nil
	}
	return err
}

// encodeCursor names the place behind a ticket.
func encodeCursor(e *indexEntry) string {
	return base64.RawURLEncoding.EncodeToString([]byte(e.created.Format(time.RFC3339Nano) + " " + e.id))
}

func parseCursor(text string) (indexEntry, error) {
	if text == "" {
		return indexEntry{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), " ")
	created, badTime := time.Parse(time.RFC3339Nano, at)
	if err != nil || !ok || badTime != nil || !validID(id) {
		return indexEntry{}, invalidQuery("/cursor", "is not one that a page of tickets ended with")
	}
	return indexEntry{id: id, created: created}, nil
}

func invalidQuery(pointer, detail string) error {
	e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	e.Add(pointer, detail)
	return e
}

// validID keeps what is no id from being a key of the store.
func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == ""
}
