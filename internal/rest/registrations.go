package rest

import (
	"context"
	"net/http"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/fleet"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Fleet holds the agents that register themselves, and what operators decide about
// agents.
type Fleet interface {
	Registrar
	// SetDisabled takes an agent of any origin out of routing, or back in.
	SetDisabled(ctx context.Context, agentID string, disabled bool, caller *contract.Caller) error
	// Leases returns the leases of an agent's instances, sorted by their names.
	Leases(agentID string) []contract.Lease
	// CheckPull returns an error unless the caller is the agent, whose instance may pull
	// tasks now.
	CheckPull(ctx context.Context, agentID, instance string, caller *contract.Caller) error
}

// Registrar changes registrations. Names of instances may be "". Every method returns
// contract.CodeForbidden if the caller is neither the agent nor an operator.
type Registrar interface {
	Register(ctx context.Context, agentID string, r contract.Registration, caller *contract.Caller, ifMatch string) (fleet.Registered, error)
	Heartbeat(ctx context.Context, agentID, instance string, caller *contract.Caller) (contract.Lease, error)
	Drain(ctx context.Context, agentID, instance string, caller *contract.Caller) (contract.Lease, error)
	Deregister(ctx context.Context, agentID, instance string, caller *contract.Caller) error
}

// InstanceName is the body of POST /api/v1/agents/{id}/heartbeat and …/drain.
type InstanceName struct {
	Instance string `json:"instance,omitempty" validate:"max=64"` // "" = contract.DefaultInstance
}

// maxRegistrationBytes bounds the body of a registration.
const maxRegistrationBytes = 256 << 10

// pathAgentID returns the id of an agent in the path.
func pathAgentID(c *httpserver.Context) (string, error) {
	id := c.PathParam("id")
	if !contract.ValidAgentID(id) {
		return "", &contract.Error{Code: contract.CodeNotFound, Message: "the id of an agent matches " + contract.AgentIDPattern}
	}
	return id, nil
}

func (a *api) handleRegister(c *httpserver.Context) error {
	id, err := pathAgentID(c)
	if err != nil {
		return err
	}
	defer c.ReleaseBody()
	var registration contract.Registration
	if err := strictjson.Unmarshal(c.Body(), &registration); err != nil {
		return decodeError(err, c.Body(), &registration)
	}
	details, err := capabilities.CheckRegistration(id, &registration)
	if err != nil {
		return err
	}
	if err := invalidRequest(details); err != nil {
		return err
	}
	registered, err := a.deps.Fleet.Register(c.Request.Context(), id, registration, c.Caller, strings.Join(c.Request.Header.Values("If-Match"), ","))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if registered.Created {
		status = http.StatusCreated
	}
	c.SetHeader("Etag", registered.ETag)
	return c.WriteJSON(status, httpserver.MediaTypeJSON, registered.Lease)
}

// changeLease is Fleet.Heartbeat or Fleet.Drain.
type changeLease func(ctx context.Context, agentID, instance string, caller *contract.Caller) (contract.Lease, error)

// handleLease returns the handler of a change of one lease.
func (a *api) handleLease(change changeLease) func(c *httpserver.Context) error {
	return func(c *httpserver.Context) error {
		id, err := pathAgentID(c)
		if err != nil {
			return err
		}
		var name InstanceName
		if c.Body() != nil {
			if err := decodeBody(c, &name); err != nil {
				return err
			}
		}
		lease, err := change(c.Request.Context(), id, name.Instance, c.Caller)
		if err != nil {
			return err
		}
		return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, lease)
	}
}

func (a *api) handleDeregister(c *httpserver.Context) error {
	id, err := pathAgentID(c)
	if err != nil {
		return err
	}
	q := parseQuery(c.Request.URL.RawQuery, "instance")
	// An empty name is probably that of a variable that is not set.
	instance := q.param("instance", func(s string) bool { return s != "" }, "must not be empty; without it, all instances leave")
	if err := q.err(); err != nil {
		return err
	}
	if err := a.deps.Fleet.Deregister(c.Request.Context(), id, instance, c.Caller); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// handleDisable returns the handler that takes an agent out of routing, or back in.
func (a *api) handleDisable(disabled bool) func(c *httpserver.Context) error {
	return func(c *httpserver.Context) error {
		id, err := pathAgentID(c)
		if err != nil {
			return err
		}
		if err := a.deps.Fleet.SetDisabled(c.Request.Context(), id, disabled, c.Caller); err != nil {
			return err
		}
		c.WriteHeader(http.StatusNoContent)
		return nil
	}
}
