package mcpclient

import (
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
)

// progressReceivers are the calls in flight that receive progress.
type progressReceivers struct {
	mu    sync.Mutex
	last  uint64
	calls map[string]*progressReceiver // by token
}

// progressReceiver passes the progress of one call on.
type progressReceiver struct {
	mu   sync.Mutex // held while receive runs
	done bool
	// receive is called while the call runs.
	receive func(contract.ActionProgress)
}

// add returns the token of a call. After stop, receive is not called any more.
func (r *progressReceivers) add(receive func(contract.ActionProgress)) (token string, stop func()) {
	call := &progressReceiver{receive: receive}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[string]*progressReceiver{}
	}
	r.last++
	token = strconv.FormatUint(r.last, 10)
	r.calls[token] = call
	return token, func() {
		r.mu.Lock()
		delete(r.calls, token)
		r.mu.Unlock()
		call.mu.Lock()
		defer call.mu.Unlock()
		call.done = true
	}
}

// pass passes the progress on to its call.
func (r *progressReceivers) pass(params *mcp.ProgressNotificationParams) {
	token, _ := params.ProgressToken.(string)
	r.mu.Lock()
	call := r.calls[token]
	r.mu.Unlock()
	if call == nil {
		return
	}
	call.mu.Lock()
	defer call.mu.Unlock()
	if !call.done {
		call.receive(contract.ActionProgress{Progress: params.Progress, Total: params.Total, Message: params.Message})
	}
}
