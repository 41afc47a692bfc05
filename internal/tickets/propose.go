package tickets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/fallback"
	"github.com/caprouter/caprouter/internal/email"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
)

// Demand is a request without an eligible agent. Its texts are masked.
type Demand struct {
	Unmet       *fallback.Unmet // with its Decision and its Caller, if there is one
	Seen        *fallback.Unmet // as visible to its caller; nil = Unmet
	RequestID   string
	Locale      string   // BCP 47; "" = unknown
	DataClasses []string // kinds of personal data that were masked in it
	DryRun      bool     // store nothing
}

func (d *Demand) owner() ticketOwner { return ownerOf(d.Unmet.Caller) }

// Preview returns the proposal of a process without tickets.
func Preview(d *Demand) *contract.Proposal {
	r := newRecord("", d)
	r.addRequest(d, 1, time.Time{})
	return r.newProposal(d, assignment{notStored: notStoredNoService})
}

// Propose stores the request in a similar open ticket of its tenant, or else in a
// new one, and returns the suggested agent. A request that asks nothing, such
// as a greeting, is not stored. An error wraps one of
// package store or of the context; then it is not known whether the request was
// counted.
func (s *Service) Propose(ctx context.Context, demand *Demand) (*contract.Proposal, error) {
	if lexical.AsksNothing(promptExcerpt(email.Body(demand.Unmet.Prompt))) {
		r := newRecord("", demand)
		r.addRequest(demand, 1, s.cfg.Now())
		return r.newProposal(demand, assignment{notStored: notStoredWordless}), nil
	}
	if demand.DryRun {
		return s.dryRun(ctx, demand)
	}
	select {
	case s.assigning <- struct{}{}:
		defer func() { <-s.assigning }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for ticket assignment: %w", ctx.Err())
	}
	s.registry.Store(&fallback.Unmet{Catalogue: demand.Unmet.Catalogue})
	r, how, err := s.assignTicket(ctx, demand)
	if err != nil {
		return nil, err
	}
	if how.stored && s.cfg.OnProposed != nil {
		s.cfg.OnProposed(how.joined)
	}
	return r.newProposal(demand, how), nil
}

// assignTicket finds the ticket of the request, or opens one.
func (s *Service) assignTicket(ctx context.Context, demand *Demand) (*ticketRecord, assignment, error) {
	for {
		id, similarity := s.index.findNearest(demand.owner(), promptExcerpt(demand.Unmet.Prompt))
		how := assignment{similarity: similarity, stored: true, joined: similarity >= JoinThreshold}
		if !how.joined {
			r, err := s.openTicket(ctx, demand, &how)
			if errors.Is(err, errSearchAgain) {
				continue
			}
			return r, how, err
		}
		r, err := s.updateTicket(ctx, id, func(r *ticketRecord) error {
			if !r.isOpen() || r.hasRequest(demand.RequestID) {
				return errNoChange
			}
			r.addRequest(demand, similarity, s.cfg.Now())
			if isMilestone(r.Ticket.Count) {
				s.addNotice(r, eventGrown)
			}
			return nil
		})
		switch {
		case errors.Is(err, errNoChange) && !r.isOpen(), errors.Is(err, store.ErrNotFound):
			// Closed or deleted: updateTicket has corrected the index.
		case errors.Is(err, errNoChange):
			how.joined = r.Ticket.Count > 1
			return r, how, nil
		default:
			return r, how, err
		}
	}
}

// openTicket opens a ticket. If too many are open, or the share of its payer is used
// up, the request gets a proposal, but no ticket.
func (s *Service) openTicket(ctx context.Context, demand *Demand, how *assignment) (*ticketRecord, error) {
	r := newRecord(s.cfg.NewID(), demand)
	r.addRequest(demand, 1, s.cfg.Now())
	if !s.hasCapacity(ctx) {
		s.cfg.Logger.WarnContext(ctx, "too many open tickets: a request is not stored; close some", "open", s.maxOpen)
		how.notStored, how.stored = notStoredFull, false
		return r, nil
	}
	if !s.hasRoom(ctx, r.Payer) {
		how.notStored, how.stored = notStoredQuota, false
		return r, nil
	}
	if reserved, err := s.others.reserveOpening(ctx, demand.owner(), r.Ticket.TicketID); err != nil {
		return nil, err
	} else if !reserved {
		return nil, errSearchAgain
	}
	s.cfg.Quota.Count(r.Payer, keyPrefix+r.Ticket.TicketID)
	s.addNotice(r, eventOpened)
	revision, err := s.table.Create(ctx, r.Ticket.TicketID, r)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		s.cfg.Quota.Withdraw(keyPrefix + r.Ticket.TicketID)
		return nil, fmt.Errorf("open a ticket: %w", err)
	}
	// After ErrUnavailable the ticket may exist. If it does not, the next request
	// that would join it corrects the index.
	s.index.put(r, revision)
	if err != nil {
		return nil, fmt.Errorf("open a ticket: %w", err)
	}
	s.enqueueNotices(r)
	s.others.announceChange(r.Ticket.TicketID)
	return r, nil
}

// hasCapacity reports whether another ticket may be opened. Open tickets that the
// bucket has dropped because of their age do not count.
func (s *Service) hasCapacity(ctx context.Context) bool {
	for {
		id, full := s.index.checkFull(s.maxOpen)
		if !full {
			return true
		}
		if _, err := s.table.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
			return false
		}
		s.index.remove(id)
	}
}

// hasRoom reports whether the payer's share has room for another ticket. The oldest
// closed tickets of a payer without room are removed.
func (s *Service) hasRoom(ctx context.Context, payer quota.Owner) bool {
	if share := int(s.cfg.Quota.Share() * float64(s.maxOpen)); s.index.countOpen(payer) >= share {
		return false
	}
	remove := func(key string) error {
		id := strings.TrimPrefix(key, keyPrefix)
		if err := s.table.Delete(ctx, id); err != nil {
			return err
		}
		s.index.remove(id)
		s.others.announceChange(id)
		return nil
	}
	if err := s.cfg.Quota.MakeRoom(payer, "", remove); err != nil {
		s.cfg.Logger.WarnContext(ctx, "cannot make room for a ticket", "error", err)
	}
	return s.cfg.Quota.Excess(payer) == 0
}

// dryRun returns the proposal without storing anything.
func (s *Service) dryRun(ctx context.Context, demand *Demand) (*contract.Proposal, error) {
	id, similarity := s.index.findNearest(demand.owner(), promptExcerpt(demand.Unmet.Prompt))
	r, how := newRecord("", demand), assignment{similarity: similarity}
	if similarity >= JoinThreshold {
		stored, err := s.loadTicket(ctx, id)
		switch {
		case err == nil && stored.isOpen():
			r, how.joined = stored, true
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	r.addRequest(demand, similarity, s.cfg.Now())
	r.Ticket.TicketID = ""
	return r.newProposal(demand, how), nil
}
