package rest

import (
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
)

// shares keeps one caller from taking every place there is: the last eighth is
// for those who hold less than half of all. So whoever comes finds a place while
// another has many long requests, and a caller who is alone has nearly all.
type shares struct {
	mu   sync.Mutex
	held map[limits.Principal]int // places by who holds them; nobody is in it with none
}

// take counts a place of the caller's, the one that makes so many taken of most,
// unless it is kept for others.
func (s *shares) take(c *contract.Caller, taken, most int) bool {
	p := limits.PrincipalOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if taken > most-most/8 && s.held[p] >= most/2 {
		return false
	}
	if s.held == nil {
		s.held = map[limits.Principal]int{}
	}
	s.held[p]++
	return true
}

func (s *shares) give(c *contract.Caller) {
	p := limits.PrincipalOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[p]--; s.held[p] <= 0 {
		delete(s.held, p)
	}
}

// pot is memory that requests share: a bound for all, and a smaller one for each
// principal, so that nobody fills it alone.
type pot struct {
	most, share int64 // bytes

	mu    sync.Mutex
	total int64
	of    map[limits.Principal]int64 // nobody is in it with none
}

// take counts bytes that are held, unless they would be too many.
func (t *pot) take(p limits.Principal, bytes int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total+bytes > t.most || t.of[p]+bytes > t.share {
		return false
	}
	if t.of == nil {
		t.of = map[limits.Principal]int64{}
	}
	t.total += bytes
	t.of[p] += bytes
	return true
}

func (t *pot) give(p limits.Principal, bytes int64) {
	if bytes == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total -= bytes
	if t.of[p] -= bytes; t.of[p] <= 0 {
		delete(t.of, p)
	}
}

// payer is whose memory a request takes: the caller's, or that of the agent
// which calls back.
func (x *exchange) payer() limits.Principal {
	if x.caller != nil {
		return limits.PrincipalOf(x.caller)
	}
	return limits.Principal{Subject: x.grant.AgentID}
}
