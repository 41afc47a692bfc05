package httptarget

import (
	"net/url"
	"strings"

	"github.com/caprouter/caprouter/contract"
)

// tasksPath is where the router takes what agents send later.
const tasksPath = "/api/v1/tasks/"

// makeCallback returns where the agent may send what comes later, or nil: where
// nobody would wait for it, or the router does not know its own address.
func (e *errand) makeCallback() (*contract.Callback, error) {
	if e.call.AwaitResult == nil {
		return nil, nil
	}
	public := e.target.publicURL()
	if public == "" {
		return nil, nil
	}
	token, err := e.target.tokens.forTask(e.call, e.due)
	if err != nil {
		return nil, err
	}
	id := url.PathEscape(e.call.Task.TaskID)
	return &contract.Callback{URL: strings.TrimRight(public, "/") + tasksPath + id + "/result", Token: token}, nil
}

// accepted makes of a 202 the promise of a Result, or a failure where none can
// come: then the agent, which is at work by now, is told to stop.
func (e *errand) accepted() *failure {
	switch {
	case e.callback != nil:
		e.later = true
		return nil
	case e.call.AwaitResult == nil:
		e.abandoned = true
		return e.badResult("accepted the task for later: it was sent no callback, since nobody waits for what comes later", nil)
	}
	e.abandoned = true
	return e.badResult("accepted the task for later: it was sent no callback, since the router does not know where agents reach it (public_url)", nil)
}
