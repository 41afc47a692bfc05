package agentkit

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// maxTaskBytes bounds the body of a task.
const maxTaskBytes = 2 << 20

// serveTask executes a task, or waits for the same task in progress, and answers
// with its result or with 202.
func (a *Agent) serveTask(w http.ResponseWriter, r *http.Request) {
	// Check the token first, so that no body without a valid token is read.
	token, refusal := a.verifier.verifyRequest(r)
	if refusal != nil {
		refusal.writeTo(w)
		return
	}
	task, refusal := a.readTask(w, r)
	if refusal == nil {
		refusal = token.checkTask(task.TaskID)
	}
	if refusal != nil {
		refusal.writeTo(w)
		return
	}
	// The work continues after a connection error; see the package comment.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), task.Deadline)
	callback := a.newCallbackSender(task)
	j, first := a.tasks.startJob(jobKey{token.caller, task.TaskID}, cancel, callback != nil)
	ctx = context.WithValue(ctx, taskContextKey{}, &taskContext{caller: token.caller, agent: a, job: j, sender: callback})
	switch {
	case !first:
		cancel()
	case callback == nil: // only this connection can receive the result
		a.runJob(ctx, j, task)
		cancel()
	default:
		a.background.Go(func() {
			defer cancel()
			a.runJob(ctx, j, task)
			a.deliverResult(ctx, j, task, callback)
		})
	}
	a.writeAnswer(w, r, j)
}

// writeAnswer waits until the job is done or accepted, and writes the response.
func (a *Agent) writeAnswer(w http.ResponseWriter, r *http.Request, j *job) {
	var asyncAfter <-chan time.Time
	if a.asyncAfter > 0 {
		timer := time.NewTimer(a.asyncAfter)
		defer timer.Stop()
		asyncAfter = timer.C
	}
	for {
		select {
		case <-j.done:
		case <-j.accepted:
		case <-asyncAfter:
			a.tasks.acceptAsync(j) // has no effect if the job is done or has no callback
			continue
		case <-r.Context().Done(): // the connection is lost
			a.tasks.acceptAsync(j) // so that the result is sent to the callback
			return
		}
		select {
		case <-j.done:
			writeJSON(w, http.StatusOK, j.answer)
		default:
			w.WriteHeader(http.StatusAccepted) // without a body, so that the connection can be reused
		}
		return
	}
}

// readTask reads the body. Unknown members are ignored, so that an agent works
// with a newer router.
func (a *Agent) readTask(w http.ResponseWriter, r *http.Request) (contract.Task, *problem) {
	var task contract.Task
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, named := params["charset"]; err != nil || media != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
		return task, problemf(http.StatusUnsupportedMediaType, "unsupported_media_type", "send application/json in UTF-8")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return task, problemf(http.StatusUnsupportedMediaType, "unsupported_media_type", "send the task without a content encoding")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTaskBytes))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return task, problemf(http.StatusRequestEntityTooLarge, "payload_too_large", "a task has at most %d bytes", maxTaskBytes)
	}
	if err == nil {
		err = decodeStrict(body, &task)
	}
	switch {
	case err != nil:
		return task, problemf(http.StatusBadRequest, "invalid_request", "not a task: %.200v", err)
	case !validTaskID(task.TaskID):
		return task, problemf(http.StatusBadRequest, "invalid_request", "not a task: task_id is missing or not an id")
	case !task.Deadline.After(a.now()):
		return task, problemf(http.StatusBadRequest, "invalid_request", "the task's deadline has passed by this agent's clock")
	}
	return task, nil
}

// validTaskID reports whether id fits into a path segment and a bounded cache.
func validTaskID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`/\?#%`, r)
	})
}
