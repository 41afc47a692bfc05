package tickets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/pagination"
	"github.com/caprouter/caprouter/internal/store"
)

// ListQuery selects tickets.
type ListQuery struct {
	Tenant     string // "" = the callers without a tenant …
	Issuer     string // … of this issuer
	AllTenants bool
	Status     contract.TicketStatus // "" = any
	Limit      int                   // 0 = 100, at most 1,000
	Cursor     string                // NextCursor of the previous page
}

// List returns a page of tickets, newest first. A ticket that is opened between two
// pages does not move the others.
func (s *Service) List(ctx context.Context, q ListQuery) (*contract.TicketPage, error) {
	return s.listPage(ctx, q, func(r *ticketRecord) contract.Ticket { return r.Ticket })
}

func (s *Service) listPage(ctx context.Context, q ListQuery, show func(*ticketRecord) contract.Ticket) (*contract.TicketPage, error) {
	after, err := pagination.ParseCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	size, err := pagination.Size(q.Limit)
	if err != nil {
		return nil, err
	}
	switch q.Status {
	case "", contract.TicketOpen, contract.TicketClosed:
	default:
		return nil, contract.InvalidRequest("/status", "must be open or closed")
	}
	of := ownerOf(&contract.Caller{Tenant: q.Tenant, Issuer: q.Issuer})
	all := s.index.listNewest(func(e *indexEntry) bool {
		return (q.AllTenants || e.of == of) && (q.Status == "" || e.status == q.Status) &&
			after.Before(e.position())
	})
	page := &contract.TicketPage{Tickets: []contract.Ticket{}}
	for i := range all {
		if len(page.Tickets) == size {
			page.NextCursor = all[i-1].position().Cursor()
			break
		}
		r, err := s.loadTicket(ctx, all[i].id)
		switch {
		case errors.Is(err, store.ErrNotFound): // it has expired
			continue
		case err != nil:
			return nil, err
		}
		page.Tickets = append(page.Tickets, show(r))
	}
	return page, nil
}

// Get returns a ticket. The error wraps store.ErrNotFound if it does not exist. The
// caller must check whether the ticket is visible.
func (s *Service) Get(ctx context.Context, id string) (*contract.Ticket, error) {
	if !store.ValidID(id) {
		return nil, fmt.Errorf("ticket %.64q: %w", id, store.ErrNotFound)
	}
	r, err := s.loadTicket(ctx, id)
	if err != nil {
		return nil, err
	}
	return &r.Ticket, nil
}

// closeTicket closes a ticket with a note, and reports whether it was open: no request joins
// it any more, and the next similar one opens another. A closed ticket does not change. The
// error wraps store.ErrNotFound if it does not exist.
func (s *Service) closeTicket(ctx context.Context, id, note string) (r *ticketRecord, closed bool, err error) {
	if !store.ValidID(id) {
		return nil, false, fmt.Errorf("ticket %.64q: %w", id, store.ErrNotFound)
	}
	note = strings.TrimSpace(note)
	if n := utf8.RuneCountInString(note); n > maxNoteLength {
		return nil, false, contract.InvalidRequest("/note", fmt.Sprintf("is %d characters long; at most %d are taken", n, maxNoteLength))
	}
	note = s.cfg.MaskText(note)
	r, err = s.updateTicket(ctx, id, func(r *ticketRecord) error {
		if !r.closeTicket(note, s.cfg.Now()) {
			return errNoChange
		}
		s.addNotice(r, eventClosed)
		return nil
	})
	if err != nil && !errors.Is(err, errNoChange) {
		return nil, false, err
	}
	return r, err == nil, nil
}

// EraseRequest removes the text of a request from every ticket, open or closed.
// Counts stay, because they reveal nothing about the request. A ticket without other
// content is deleted.
func (s *Service) EraseRequest(ctx context.Context, requestID string) error {
	if requestID == "" {
		return nil
	}
	var ids []string
	// The bytes, not the records, because a damaged ticket may contain the request.
	err := s.cfg.Bucket.Scan(ctx, keyPrefix, func(e store.Entry) error {
		if bytes.Contains(e.Value, []byte(requestID)) {
			ids = append(ids, strings.TrimPrefix(e.Key, keyPrefix))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("find the tickets of a request: %w", err)
	}
	for _, id := range ids {
		if err := s.eraseFromTicket(ctx, id, requestID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// errNothingLeft ends an update after which the ticket would be of no use.
var errNothingLeft = errors.New("useless")

// eraseFromTicket keeps the id of the request in the ticket until its earlier revisions are
// erased, so that an interrupted erasure can be repeated.
func (s *Service) eraseFromTicket(ctx context.Context, id, requestID string) error {
	_, err := s.updateTicket(ctx, id, func(r *ticketRecord) error {
		if useful := r.eraseRequest(requestID); !useful {
			return errNothingLeft
		}
		r.refreshSuggestion(s.registry.Load())
		return nil
	})
	if errors.Is(err, errNothingLeft) {
		if err := s.table.Delete(ctx, id); err != nil {
			return fmt.Errorf("delete ticket %s: %w", id, err)
		}
		s.index.remove(id)
		s.others.announceChange(id)
		return nil
	}
	if err == nil {
		err = s.table.EraseHistory(ctx, id)
	}
	if err == nil {
		_, err = s.updateTicket(ctx, id, func(r *ticketRecord) error { r.forgetRequest(requestID); return nil })
	}
	return err
}
