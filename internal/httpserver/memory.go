package httpserver

import (
	"sync"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/limits"
)

// Limits of the memory that request bodies hold between reading and decoding, and
// of the memory that responses hold while they are written without a permit, in bytes.
const (
	maxRequestMemory  = 256 << 20
	maxResponseMemory = 256 << 20

	// memoryShares is the number of shares of each limit. One owner, a tenant or a caller
	// without one, can use one share, unless the server has only one caller.
	memoryShares = 8
)

// memoryBudget bounds memory that requests hold, in total and per owner.
type memoryBudget struct {
	limit, limitPerOwner int64 // bytes

	mu     sync.Mutex
	used   int64
	usedBy map[limits.Principal]int64 // without zeros
}

func newMemoryBudget(limit, limitPerOwner int64) *memoryBudget {
	return &memoryBudget{limit: limit, limitPerOwner: limitPerOwner, usedBy: map[limits.Principal]int64{}}
}

// memoryOwnerOf returns the owner of the memory of a caller's requests. The callers of a
// tenant share one budget, because a tenant may have any number of them.
func memoryOwnerOf(c *contract.Caller) limits.Principal {
	if c.Tenant != "" {
		return limits.Principal{Tenant: c.Tenant}
	}
	return limits.PrincipalOf(c)
}

// reserveBytes counts bytes, or reports false if they exceed the budget.
func (b *memoryBudget) reserveBytes(owner limits.Principal, bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+bytes > b.limit || b.usedBy[owner]+bytes > b.limitPerOwner {
		return false
	}
	b.used += bytes
	b.usedBy[owner] += bytes
	return true
}

func (b *memoryBudget) releaseBytes(owner limits.Principal, bytes int64) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
	if b.usedBy[owner] -= bytes; b.usedBy[owner] <= 0 {
		delete(b.usedBy, owner)
	}
}
