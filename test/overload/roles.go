package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/test/internal/process"
)

// The roles of this program in processes of their own.
const (
	roleAgent    = "agent" // of the router
	roleBaseline = "floor" // the server that the router is compared with
)

// serveRole runs a role until the parent ends.
func serveRole(ctx context.Context, role string) error {
	switch role {
	case roleAgent:
		return process.ServeRole(ctx, newAgentHandler(agentDelay))
	case roleBaseline:
		return process.ServeRole(ctx, &bareServer{work: agentDelay, limit: inFlight})
	}
	return fmt.Errorf("no role %q", role)
}

// newAgentHandler answers every task after the duration.
func newAgentHandler(work time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if resilience.Sleep(r.Context(), work) {
			writeJSON(w, http.StatusOK, "application/json", contract.Result{Status: contract.ResultSuccess})
		}
	})
}

// bareServer is a server without a router: it processes a limited number of requests
// at a time and rejects the others at once.
type bareServer struct {
	work   time.Duration
	limit  int64
	active atomic.Int64
}

func (s *bareServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	defer s.active.Add(-1)
	if s.active.Add(1) > s.limit {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, typeProblem, problemBody{Status: http.StatusServiceUnavailable, Code: contract.CodeOverloaded})
		return
	}
	if resilience.Sleep(r.Context(), s.work) {
		writeJSON(w, http.StatusOK, "application/json", contract.Response{Status: contract.StatusCompleted})
	}
}

func writeJSON(w http.ResponseWriter, status int, mediaType string, body any) {
	data, err := strictjson.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails if the caller disconnected
}
