package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/caprouter/caprouter/contract"
)

func (s *Server) handleRoute(x *exchange, _ echo.Context) error {
	req, err := s.decodeRequest(x)
	if err != nil {
		return err
	}
	resp, err := s.deps.Router.Handle(x.req.Context(), req, x.caller)
	if err != nil {
		return err
	}
	setDecision(x, resp.Decision)
	if resp.Status == contract.StatusUnsupported && !req.Options.DryRun {
		return s.writeUnsupported(x, resp)
	}
	x.outcome = string(resp.Status)
	x.set("Cache-Control", "no-store")
	return s.writeJSON(x, http.StatusOK, typeJSON, resp)
}

func (s *Server) handleClassify(x *exchange, _ echo.Context) error {
	req, err := s.decodeRequest(x)
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
