package router

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/caprouter/caprouter/contract"
)

// accept refuses a request that is not valid, or that asks for what this
// version does not offer, before anything is done for it. It gives an accepted
// one the ids it does not bring.
func (r *Router) accept(ctx context.Context, req *contract.Request, caller *contract.Caller) (*job, error) {
	view := r.view.Load()
	if view == nil {
		return nil, &contract.Error{Code: contract.CodeOverloaded, Message: "the registry is not loaded yet"}
	}
	e := req.Validate()
	if e == nil {
		e = &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
	}
	if req.Options.Mode == contract.ModeAsync && !r.keep.Book.Enabled() {
		e.Add("/options/mode", "async needs a server with a store: leave it out, or say sync")
	}
	if f := req.Options.Fallback; f != nil {
		r.checkPolicy(view, *f, e)
	}
	if len(e.Details) > 0 {
		return nil, e
	}
	if req.RequestID == "" {
		req.RequestID = r.cfg.NewID()
	}
	if req.TraceID == "" {
		req.TraceID = newTraceID()
	}
	return r.begin(ctx, view, req, caller)
}

// newTraceID begins a trace (W3C Trace Context §3.2.2.3).
func newTraceID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(id[:])
}
