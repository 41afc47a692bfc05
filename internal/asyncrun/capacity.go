package asyncrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// maxOpen bounds the asynchronous requests that have not ended, because each of
// them needs some memory. Further ones are rejected.
const maxOpen = 20_000

// capacityValidity is how long a check of the remaining space in the store is valid.
const capacityValidity = 200 * time.Millisecond

// capacity is the admission control of asynchronous requests.
type capacity struct {
	store        *requests.Store
	logger       *slog.Logger
	checkedUntil atomic.Int64 // Unix milliseconds

	mu     sync.Mutex
	open   int
	openOf map[quota.Owner]int // without zeros
}

// reserve admits one request, to be followed by release when the request ends. It
// rejects the request if too many are open, if the share of its owner is used up, or
// if the remaining space in the store is reserved for the requests already accepted.
func (c *capacity) reserve(ctx context.Context, caller *contract.Caller) error {
	if err := c.reserveOpen(caller); err != nil {
		return err
	}
	err := c.checkSpace(ctx, caller)
	if err != nil {
		c.release(caller)
	}
	return err
}

// reserveOpen counts one more open request. One owner may have its share of them.
func (c *capacity) reserveOpen(caller *contract.Caller) error {
	owner, share := quota.OwnerOf(caller), int(c.store.Quota().Share()*maxOpen)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open >= maxOpen:
		return &contract.Error{
			Code: contract.CodeOverloaded, Message: fmt.Sprintf("%d requests are open already; wait until some have ended", maxOpen),
		}
	case c.openOf[owner] >= share:
		return &contract.Error{Code: contract.CodeQuotaExceeded, Message: fmt.Sprintf(
			"%d asynchronous requests are open already (store.tenant_share); wait until some have ended, or cancel some", share)}
	}
	c.add(owner, 1)
	return nil
}

func (c *capacity) add(owner quota.Owner, n int) {
	c.open += n
	if c.openOf == nil {
		c.openOf = map[quota.Owner]int{}
	}
	if c.openOf[owner] += n; c.openOf[owner] == 0 {
		delete(c.openOf, owner)
	}
}

func (c *capacity) checkSpace(ctx context.Context, caller *contract.Caller) error {
	if err := c.store.MakeRoom(ctx, caller); err != nil {
		if _, ok := errors.AsType[*contract.Error](err); ok {
			return err
		}
		return store.CallerError(ctx, c.logger, "the request cannot be stored", err)
	}
	now := time.Now()
	if now.UnixMilli() < c.checkedUntil.Load() {
		return nil
	}
	ok, err := c.store.HasCapacity(ctx)
	if err == nil && !ok {
		ok, err = c.store.FreeCapacity(ctx)
	}
	switch {
	case err != nil:
		return store.CallerError(ctx, c.logger, "the request cannot be stored", err)
	case !ok:
		return &contract.Error{
			Code: contract.CodeOverloaded, Message: "the store is nearly full (store.retention); wait until requests have ended, or erase some",
		}
	}
	c.checkedUntil.Store(now.Add(capacityValidity).UnixMilli())
	return nil
}

// addStored admits a request that was stored before.
func (c *capacity) addStored(caller *contract.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(quota.OwnerOf(caller), 1)
}

func (c *capacity) release(caller *contract.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(quota.OwnerOf(caller), -1)
}

func (c *capacity) countOpen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}
