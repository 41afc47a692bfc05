package asyncrun

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/execution"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/inflight"
	"github.com/caprouter/caprouter/internal/requests"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Messenger sends messages to the other processes that share the store, which may be
// lost. *store.Store implements it.
type Messenger interface {
	Broadcast(topic string, data []byte) error
	Subscribe(ctx context.Context, topic string, fn func(data []byte)) error
}

// requestTopic is the topic of the messages about requests.
const requestTopic = "requests"

// message is a notification about a request between the processes that share the store. Only
// the process that executes the request acts on it, except for an offer.
type message struct {
	Kind      messageKind        `json:"kind"`
	RequestID string             `json:"request_id"`
	TaskID    string             `json:"task_id,omitempty"`
	AgentID   string             `json:"agent_id,omitempty"`
	Progress  *contract.Progress `json:"progress,omitempty"`
}

type messageKind string

const (
	recordChanged messageKind = "changed"  // read the record again
	recordNeeded  messageKind = "needed"   // store the request: a result of the task has arrived elsewhere
	taskProgress  messageKind = "progress" // of the task
	cancelRequest messageKind = "cancel"   // that has no record
	taskOffered   messageKind = "offered"  // the agent may pull the task
)

// PeerConfig is what Peers work with. All fields are required.
type PeerConfig struct {
	Messages Messenger
	Store    *requests.Store
	AuditLog AuditLog
	Owner    string                  // names this process
	IsLive   func(owner string) bool // whether the process with this owner id may execute requests
	Logger   *slog.Logger
}

// Peers are the other processes that share the store. It implements execution.Peers.
type Peers struct{ cfg PeerConfig }

// NewPeers returns Peers.
func NewPeers(cfg PeerConfig) *Peers { return &Peers{cfg} }

// broadcast sends a message. A failure is not an error: the store has the truth.
func (p *Peers) broadcast(m message) {
	data, err := strictjson.Marshal(m)
	if err == nil {
		err = p.cfg.Messages.Broadcast(requestTopic, data)
	}
	if err != nil {
		p.cfg.Logger.Debug("a message to the other replicas was not sent", "request_id", m.RequestID, "kind", string(m.Kind), "error", err)
	}
}

// Announce implements execution.Peers.
func (p *Peers) Announce(requestID string) {
	p.broadcast(message{Kind: recordChanged, RequestID: requestID})
}

// Cancel asks the process that executes a request without a record to cancel it.
func (p *Peers) Cancel(requestID string) {
	p.broadcast(message{Kind: cancelRequest, RequestID: requestID})
}

// Offer implements execution.Peers.
func (p *Peers) Offer(task pulltarget.Offer) {
	p.broadcast(message{Kind: taskOffered, RequestID: task.RequestID, TaskID: task.TaskID, AgentID: task.AgentID})
}

// ForwardProgress implements execution.Peers.
func (p *Peers) ForwardProgress(ctx context.Context, grant contract.TaskGrant, progress *contract.Progress) error {
	rec, err := p.cfg.Store.Get(ctx, grant.RequestID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = p.checkExecuting(ctx, grant.RequestID)
	case err != nil:
		err = p.lookupError(ctx, err)
	case !rec.HasOpenTask(grant.TaskID, grant.AgentID):
		err = requests.ErrEnded
	}
	if errors.Is(err, store.ErrNotFound) {
		return requests.ErrEnded
	}
	if err == nil {
		p.broadcast(message{Kind: taskProgress, RequestID: grant.RequestID, TaskID: grant.TaskID, AgentID: grant.AgentID, Progress: progress})
	}
	return err
}

// Bounds of AwaitRecord.
const (
	awaitRecordTimeout  = 2 * time.Second
	awaitRecordInterval = 25 * time.Millisecond
)

// AwaitRecord implements execution.Peers.
func (p *Peers) AwaitRecord(ctx context.Context, grant contract.TaskGrant) error {
	if err := p.checkExecuting(ctx, grant.RequestID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, awaitRecordTimeout)
	defer cancel()
	for {
		p.broadcast(message{Kind: recordNeeded, RequestID: grant.RequestID, TaskID: grant.TaskID})
		if !resilience.Sleep(ctx, awaitRecordInterval) {
			return &contract.Error{Code: contract.CodeOverloaded, Message: "another replica executes the request and has not stored it yet; try again"}
		}
		if _, err := p.cfg.Store.Get(ctx, grant.RequestID); !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
			return p.lookupError(ctx, err)
		}
	}
}

// checkExecuting returns nil if another live process executes the request in memory.
func (p *Peers) checkExecuting(ctx context.Context, requestID string) error {
	found, err := p.cfg.AuditLog.Find(ctx, requestID)
	switch {
	case err != nil:
		return p.lookupError(ctx, err)
	case found.Outcome != nil || !p.IsExecuting(history.DecidedBy(found.Decision)):
		return requests.ErrEnded
	}
	return nil
}

// lookupError returns the error of an agent whose request cannot be looked up: it is to try
// again, unless there is no such request.
func (p *Peers) lookupError(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) {
		return err
	}
	return store.CallerError(ctx, p.cfg.Logger, "the request of the task cannot be looked up", err)
}

// IsExecuting reports whether another live process has the owner id.
func (p *Peers) IsExecuting(owner string) bool {
	return owner != "" && owner != p.cfg.Owner && p.cfg.IsLive(owner)
}

// Follow acts on the messages of other processes until ctx ends, and then waits for the
// writes that they have caused.
func (p *Peers) Follow(ctx context.Context, callbacks *execution.Callbacks, executing *inflight.Table) error {
	g := run.New(ctx)
	handler := &messageHandler{callbacks: callbacks, executing: executing, work: newRequestWork(g, maxRequestWork), logger: p.cfg.Logger}
	g.Go("receive messages of other replicas", func(ctx context.Context) error { return p.receiveMessages(ctx, handler) })
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// receiveMessages passes the messages of other processes to a handler until ctx ends.
func (p *Peers) receiveMessages(ctx context.Context, handler *messageHandler) error {
	backoff := execution.NewWriteBackoff()
	for {
		err := p.cfg.Messages.Subscribe(ctx, requestTopic, func(data []byte) {
			var m message
			if err := strictjson.UnmarshalDeep(data, &m); err != nil {
				p.cfg.Logger.Debug("a message of another replica cannot be read", "error", err)
				return
			}
			backoff.Reset()
			handler.handle(&m)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.cfg.Logger.WarnContext(ctx, "messages of other replicas are not received, trying again", "error", err)
		if !backoff.Sleep(ctx) {
			return ctx.Err()
		}
	}
}

// messageHandler acts on messages of other processes.
type messageHandler struct {
	callbacks *execution.Callbacks
	executing *inflight.Table
	work      *requestWork
	logger    *slog.Logger
}

// handle does not wait for the store.
func (h *messageHandler) handle(m *message) {
	request := h.executing.Lookup(m.RequestID)
	switch {
	case request == nil && m.Kind == taskOffered:
		h.callbacks.Offers().Announced(pulltarget.Offer{AgentID: m.AgentID, RequestID: m.RequestID, TaskID: m.TaskID}, time.Now())
		return
	case request == nil:
		return
	}
	switch m.Kind {
	case recordChanged:
		h.startWork(m, func(ctx context.Context) { h.callbacks.Refresh(ctx, m.RequestID) })
	case recordNeeded:
		h.startWork(m, func(ctx context.Context) { h.callbacks.StoreRequest(ctx, m.TaskID) })
	case taskProgress:
		h.callbacks.EmitProgress(contract.TaskGrant{RequestID: m.RequestID, TaskID: m.TaskID, AgentID: m.AgentID}, m.Progress)
	case cancelRequest:
		request.Cancel(inflight.ErrCancelled)
	}
}

func (h *messageHandler) startWork(m *message, fn func(ctx context.Context)) {
	if !h.work.start(workKey{m.Kind, m.RequestID}, fn) {
		h.logger.Debug("a message of another replica was dropped, because too many requests wait for the store", "request_id", m.RequestID, "kind", string(m.Kind))
	}
}

// NoMessages is the Messenger of a process whose store no other process uses.
type NoMessages struct{}

// Broadcast does nothing.
func (NoMessages) Broadcast(string, []byte) error { return nil }

// Subscribe waits until ctx ends.
func (NoMessages) Subscribe(ctx context.Context, _ string, _ func([]byte)) error {
	<-ctx.Done()
	return ctx.Err()
}
