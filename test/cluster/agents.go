package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/test/internal/process"
	"github.com/caprouter/caprouter/test/internal/workload"
)

const (
	leaseSeconds   = 10
	heartbeatPause = time.Second
	turnPause      = 100 * time.Millisecond
	routedLimit    = 10 * time.Second
	agentPath      = workload.PublicURL + "/api/v1/agents/" + workload.JoinedAgent
)

// call sends a request through the routers, and returns the status of the answer, 0 if
// there is none.
func call(ctx context.Context, routers *workload.Routers, method, url string, body []byte) int {
	ctx, cancel := context.WithTimeout(ctx, process.IOTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := routers.Client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// routesJoined reports whether the replica sends a request to the agent that registered
// itself.
func (s *script) routesJoined(ctx context.Context, i, n int) bool {
	prompt := fmt.Appendf(nil, `{"content":{"prompt":"`+workload.JoinedPrompt+`"}}`, n)
	return call(ctx, workload.OneRouter(s.replicas[i].Process.Addr()), http.MethodPost, workload.PublicURL+"/api/v1/route", prompt) == http.StatusOK
}

// measureRegistration registers an agent at replica 1 and measures when replica 2 routes
// to it.
func (s *script) measureRegistration(ctx context.Context) error {
	first := workload.OneRouter(s.replicas[0].Process.Addr())
	if status := call(ctx, first, http.MethodDelete, agentPath, nil); status != http.StatusNoContent && status != http.StatusNotFound {
		return fmt.Errorf("remove the registration: status %d", status)
	}
	status := call(ctx, first, http.MethodPut, agentPath, workload.Registration(s.agents.Base, leaseSeconds))
	if status != http.StatusOK && status != http.StatusCreated {
		return fmt.Errorf("register an agent: status %d", status)
	}
	registered, n := time.Now(), 0
	routed := workload.AwaitCondition(ctx, routedLimit, func() bool { n++; return s.routesJoined(ctx, 1, n) })
	took := fmt.Sprintf("%d ms", time.Since(registered).Milliseconds())
	if !routed {
		took = fmt.Sprintf("not within %s", routedLimit)
	}
	s.addFigure("  registered at replica 1 until replica 2 routed to it", took)
	return nil
}

// sendHeartbeats renews the lease of the agent at alternating replicas.
func (s *script) sendHeartbeats(ctx, lives context.Context) {
	for resilience.Sleep(lives, heartbeatPause) {
		call(ctx, s.routers, http.MethodPost, agentPath+"/heartbeat", []byte("{}"))
	}
}

// checkRegistration records a violation if a replica does not route to the agent whose
// lease was renewed all the time.
func (s *script) checkRegistration(ctx context.Context) {
	for i := range s.replicas {
		if !s.routesJoined(ctx, i, -i) {
			s.ledger.RecordUnexpected("", fmt.Sprintf("replica %d does not route to the agent that registered itself", i+1))
		}
	}
}

// holdSession sends one turn of a session after the other, to alternating replicas. The
// agent checks that the task contains the turn before.
func (s *script) holdSession(ctx, lives context.Context) {
	before := ""
	for n := 0; resilience.Sleep(lives, turnPause); n++ {
		prompt := fmt.Sprintf(workload.PlainPrompt, n) + " in a session"
		if s.load.Callers.SubmitOrder(ctx, workload.NewTurn("session", prompt, before)) {
			before = prompt
		}
	}
}
