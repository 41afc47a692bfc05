package dispatch

import (
	"context"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// None is the dispatcher of a router that only decides. All agents count as available.
type None struct{}

// SetAgents returns nil: the declared state of an agent applies.
func (None) SetAgents([]*contract.RegistryEntry) matcher.Live { return nil }

// CancelTask does nothing.
func (None) CancelTask(Call) {}

// Prepare returns the zero value.
func (None) Prepare(context.Context, Call) Token { return Token{} }

// Send returns an error, because a dry run must not dispatch.
func (None) Send(context.Context, Call) Outcome {
	return unavailableOutcome("this router only decides: no agent is called")
}
