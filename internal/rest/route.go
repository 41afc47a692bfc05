package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

func (s *Server) handleRoute(x *exchange, _ echo.Context) error {
	req, err := s.decodeRequest(x, heed)
	if err != nil {
		return err
	}
	if req.Options.Mode == contract.ModeAsync {
		return s.submit(x, req)
	}
	if wantsStream(x.req.Header["Accept"]) {
		return s.streamAnswer(x, req)
	}
	resp, err := s.deps.Router.Handle(x.req.Context(), req, x.caller)
	if err != nil {
		return err
	}
	setAnswer(x, resp)
	if resp.Status == contract.StatusUnsupported && !req.Options.DryRun {
		return s.writeUnsupported(x, resp)
	}
	return s.writeResponse(x, http.StatusOK, resp)
}

// submit answers as soon as the request is on disk.
func (s *Server) submit(x *exchange, req *contract.Request) error {
	resp, err := s.deps.Router.Submit(x.req.Context(), req, x.caller)
	if err != nil {
		return err
	}
	setAnswer(x, resp)
	if resp.Status.Terminal() { // sent again, after it was done
		return s.writeResponse(x, http.StatusOK, resp)
	}
	x.set("Location", "/api/v1/requests/"+resp.RequestID)
	if prefersAsync(x.req.Header["Prefer"]) {
		x.set("Preference-Applied", preferAsync)
	}
	return s.writeResponse(x, http.StatusAccepted, resp)
}

// streamAnswer tells what happens to the request while it is worked on; the last
// event holds the answer, of policy B as well.
func (s *Server) streamAnswer(x *exchange, req *contract.Request) error {
	return s.pump(x, nil, func(ctx context.Context, emit emitter) error {
		resp, err := s.deps.Router.Stream(ctx, req, x.caller, func(ev *contract.Event) {
			_ = emit(0, ev) // a reader who is gone ends ctx, which is what the core looks at
		})
		if err != nil {
			return err
		}
		x.outcome = string(resp.Status)
		return emit(0, &contract.Event{
			Type: contract.EventFinal, RequestID: resp.RequestID, At: time.Now().UTC(), Response: resp,
		})
	})
}

func (s *Server) handleClassify(x *exchange, _ echo.Context) error {
	req, err := s.decodeRequest(x, nil)
	if err != nil {
		return err
	}
	clf, err := s.deps.Router.Classify(x.req.Context(), req, x.caller)
	if err != nil {
		return err
	}
	x.set("X-Router-Source", string(clf.Source))
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, http.StatusOK, typeJSON, clf)
}

func (s *Server) writeResponse(x *exchange, status int, resp *contract.Response) error {
	x.outcome = string(resp.Status)
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, status, typeJSON, resp)
}

// answerHeaders are those that tell of an answer, in canonical form.
func answerHeaders() [9]string {
	return [...]string{
		"X-Router-Decision-Id", "X-Router-Agent", "X-Router-Source", "X-Router-Fallback",
		"Idempotency-Replayed", "Location", "Preference-Applied", "Ratelimit-Policy", "Ratelimit",
	}
}

// setAnswer says in headers what an answer is.
func setAnswer(x *exchange, resp *contract.Response) {
	setDecision(x, resp.Decision)
	if resp.Replayed {
		x.set("Idempotency-Replayed", "true")
	}
}

// setDecision repeats the gist of a decision in headers, for proxies and logs
// that do not read bodies.
func setDecision(x *exchange, d *contract.Decision) {
	if d == nil {
		return
	}
	x.set("X-Router-Decision-Id", d.DecisionID)
	if len(d.Chosen) > 0 {
		x.set("X-Router-Agent", strings.Join(d.Chosen, ","))
	}
	if d.Classification.Source != "" {
		x.set("X-Router-Source", string(d.Classification.Source))
	}
	if d.FallbackUsed != nil {
		x.set("X-Router-Fallback", *d.FallbackUsed)
	}
}
