package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/responsejson"
)

func (a *api) handleRoute(c *httpserver.Context) error {
	req, err := decodeRequest(c, applyRouteHeaders)
	if err != nil {
		return err
	}
	if req.Options.Mode == contract.ModeAsync {
		return a.submitRequest(c, req)
	}
	if prefersEventStream(c.Request.Header["Accept"]) {
		return a.streamResponse(c, req)
	}
	resp, encoded, err := a.deps.Router.HandleJSON(c.Request.Context(), req, c.Caller)
	if err != nil {
		return err
	}
	setResponseHeaders(c, resp)
	switch {
	case resp.Status == contract.StatusUnsupported && !req.Options.DryRun:
		return writeUnsupported(c, resp)
	case resp.Status == contract.StatusRunning:
		return writeUnfinished(c, resp)
	}
	return writeEncoded(c, http.StatusOK, resp, encoded)
}

// writeUnfinished answers a request that is executed without its caller: an asynchronous
// one, or a synchronous one that another replica has taken over.
func writeUnfinished(c *httpserver.Context, resp *contract.Response) error {
	c.SetHeader("Location", "/api/v1/requests/"+resp.RequestID)
	return writeResponse(c, http.StatusAccepted, resp)
}

// submitRequest answers an asynchronous request as soon as it is stored durably.
func (a *api) submitRequest(c *httpserver.Context, req *contract.Request) error {
	resp, err := a.deps.Router.Submit(c.Request.Context(), req, c.Caller)
	if err != nil {
		return err
	}
	setResponseHeaders(c, resp)
	if resp.Status.Terminal() { // sent again after the request had ended
		return writeResponse(c, http.StatusOK, resp)
	}
	if prefersAsync(c.Request.Header["Prefer"]) {
		c.SetHeader("Preference-Applied", preferAsync)
	}
	return writeUnfinished(c, resp)
}

// streamResponse answers with the events of the request. The last event has the
// response, also if no agent is eligible. Its status is running if another process has
// taken the request over.
func (a *api) streamResponse(c *httpserver.Context, req *contract.Request) error {
	return c.StreamEvents(httpserver.EventStream{
		SetHeaders: setEventHeaders,
		Source: func(ctx context.Context, emit httpserver.EmitFunc) error {
			resp, err := a.deps.Router.Stream(ctx, req, c.Caller, func(ev *contract.Event) {
				_ = emit(newEvent(0, ev)) // if the reader disconnected, ctx has ended, too
			})
			if err != nil {
				return err
			}
			c.SetOutcome(string(resp.Status))
			return emit(newEvent(0, &contract.Event{
				Type: contract.EventFinal, RequestID: resp.RequestID, At: time.Now().UTC(), Response: resp,
			}))
		},
	})
}

func (a *api) handleClassify(c *httpserver.Context) error {
	req, err := decodeRequest(c, ignoreHeaders)
	if err != nil {
		return err
	}
	clf, err := a.deps.Router.Classify(c.Request.Context(), req, c.Caller)
	if err != nil {
		return err
	}
	c.SetHeader("X-Router-Source", string(clf.Source))
	return c.WriteJSON(http.StatusOK, httpserver.MediaTypeJSON, clf)
}

func writeResponse(c *httpserver.Context, status int, resp *contract.Response) error {
	return writeEncoded(c, status, resp, nil)
}

// typicalSize is the usual size of an encoded response, in bytes.
const typicalSize = 4 << 10

// writeEncoded writes the response, whose JSON is nil if it is not encoded yet.
func writeEncoded(c *httpserver.Context, status int, resp *contract.Response, encoded []byte) (err error) {
	c.SetOutcome(string(resp.Status))
	if encoded == nil {
		if encoded, err = responsejson.Append(make([]byte, 0, typicalSize), resp); err != nil {
			return fmt.Errorf("encode the response: %w", err)
		}
	}
	c.WriteEncoded(status, httpserver.MediaTypeJSON, encoded)
	return nil
}

// responseHeaders returns the headers that describe a response.
func responseHeaders() []string {
	return []string{
		"X-Router-Decision-Id", "X-Router-Agent", "X-Router-Source", "X-Router-Fallback",
		"Idempotency-Replayed", "Location", "Preference-Applied",
	}
}

func setResponseHeaders(c *httpserver.Context, resp *contract.Response) {
	setDecisionHeaders(c, resp.Decision)
	if resp.Replayed {
		c.SetHeader("Idempotency-Replayed", "true")
	}
}

// setDecisionHeaders repeats parts of the decision in headers, for proxies and
// logs that do not parse bodies.
func setDecisionHeaders(c *httpserver.Context, d *contract.Decision) {
	if d == nil {
		return
	}
	c.SetHeader("X-Router-Decision-Id", d.DecisionID)
	if len(d.Chosen) > 0 {
		c.SetHeader("X-Router-Agent", strings.Join(d.Chosen, ","))
	}
	if d.Classification.Source != "" {
		c.SetHeader("X-Router-Source", string(d.Classification.Source))
	}
	if d.FallbackUsed != nil {
		c.SetHeader("X-Router-Fallback", *d.FallbackUsed)
	}
}
