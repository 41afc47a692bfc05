package rest

import (
	"context"
	"net/http"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/limits"
)

// ResultReceipt is the response of POST /api/v1/tasks/{id}/result.
type ResultReceipt struct {
	Status string `json:"status"`
}

// grantKey is the context key of the contract.TaskGrant that authorizeTask adds.
type grantKey struct{}

// authorizeTask checks that the request has the token of the task in its path.
// The agent, not a caller, is the principal of the request.
func (a *api) authorizeTask(c *httpserver.Context) error {
	if len(c.Request.Header["Authorization"]) == 0 {
		return c.RequireToken("the token of the task is needed: Authorization: Bearer …")
	}
	grant, err := a.deps.TaskTokens(httpserver.BearerToken(c.Request.Header))
	if err != nil {
		return c.RejectToken(&contract.Error{
			Code: contract.CodeUnauthenticated, Message: "the task's token is not valid or has expired",
		})
	}
	if grant.TaskID != c.PathParam("id") {
		return &contract.Error{Code: contract.CodeNotFound, Message: "there is no such task for this token"}
	}
	c.MemoryOwner = limits.Principal{Subject: grant.AgentID}
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), grantKey{}, grant))
	return nil
}

// taskGrant returns the grant of a request that authorizeTask has accepted.
func taskGrant(c *httpserver.Context) contract.TaskGrant {
	grant, _ := c.Request.Context().Value(grantKey{}).(contract.TaskGrant)
	return grant
}

func (a *api) handleResult(c *httpserver.Context) error {
	var res contract.Result
	if err := decodeBody(c, &res); err != nil {
		return err
	}
	grant := taskGrant(c)
	if res.TaskID != grant.TaskID {
		return contract.InvalidRequest("/task_id", "must be the id of the task in the path")
	}
	if err := a.deps.Tasks.AcceptResult(c.Request.Context(), grant, &res); err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, ResultReceipt{Status: "accepted"})
}

func (a *api) handleProgress(c *httpserver.Context) error {
	var p contract.Progress
	if err := decodeBody(c, &p); err != nil {
		return err
	}
	grant := taskGrant(c)
	if grant.Lease == 0 {
		if err := a.deps.Tasks.AcceptProgress(c.Request.Context(), grant, &p); err != nil {
			return err
		}
		c.WriteHeader(http.StatusNoContent)
		return nil
	}
	lease, err := a.deps.Leases.Renew(c.Request.Context(), grant)
	if err == nil && lease.State == contract.LeaseHeld {
		err = a.deps.Tasks.AcceptProgress(c.Request.Context(), grant, &p)
	}
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, lease)
}

// handleTaskHeartbeat renews the lease of a task.
func (a *api) handleTaskHeartbeat(c *httpserver.Context) error {
	lease, err := a.deps.Leases.Renew(c.Request.Context(), taskGrant(c))
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, lease)
}

// maxPullWaitS is how many seconds pass until a poll notices that its agent gets no tasks
// any more, for example because it drains.
const maxPullWaitS = 2

// handlePull gives the agent its next task. A poll ends when the server stops.
func (a *api) handlePull(c *httpserver.Context) error {
	id, err := pathAgentID(c)
	if err != nil {
		return err
	}
	var req contract.LeaseRequest
	if c.Body() != nil {
		if err := decodeBody(c, &req); err != nil {
			return err
		}
	}
	ctx := c.Request.Context()
	for left := req.WaitS; ; left -= req.WaitS {
		if err := a.deps.Fleet.CheckPull(ctx, id, req.Instance, c.Caller); err != nil {
			return err
		}
		req.WaitS = min(left, maxPullWaitS)
		leased, ok, err := a.deps.Leases.Lease(ctx, id, &req, c.ShutdownStarted())
		switch {
		case err != nil:
			return err
		case ok:
			return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, leased)
		case left <= req.WaitS || ctx.Err() != nil || c.Draining():
			c.WriteHeader(http.StatusNoContent)
			return nil //nolint:nilerr // a client that has disconnected gets no task
		}
	}
}
