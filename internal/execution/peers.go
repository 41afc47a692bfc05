package execution

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/store"
)

// Peers are the other processes that share the store. Messages to them may be lost:
// they only make faster what a process finds in the store anyway.
type Peers interface {
	// Announce lets the process that executes the request read its record again.
	Announce(requestID string)

	// AwaitRecord asks the process that executes the request of a task in memory to
	// store it, and returns nil when it is stored. Errors are requests.ErrEnded if no
	// process executes it, store.ErrNotFound if it is unknown, and a *contract.Error if
	// it is not stored in time.
	AwaitRecord(ctx context.Context, grant contract.TaskGrant) error

	// ForwardProgress sends the progress of a task to the process that executes it. It
	// returns requests.ErrEnded if no process does.
	ForwardProgress(ctx context.Context, grant contract.TaskGrant, progress *contract.Progress) error

	// Offer announces a task that its agent may pull from any process.
	Offer(task pulltarget.Offer)
}

// NoPeers are the Peers of a process whose store no other process uses.
type NoPeers struct{}

// Announce does nothing.
func (NoPeers) Announce(string) {}

// AwaitRecord returns store.ErrNotFound.
func (NoPeers) AwaitRecord(context.Context, contract.TaskGrant) error { return store.ErrNotFound }

// ForwardProgress returns requests.ErrEnded.
func (NoPeers) ForwardProgress(context.Context, contract.TaskGrant, *contract.Progress) error {
	return requests.ErrEnded
}

// Offer does nothing.
func (NoPeers) Offer(pulltarget.Offer) {}
