package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// restLink calls actions of a server of transport rest: one POST of the action, whose
// reply is the result.
type restLink struct {
	server *mcpfile.Expanded
	client *http.Client
}

// connectREST makes the server available until the context ends. There is no connection
// that could be lost.
func (s *server) connectREST(ctx context.Context, expanded *mcpfile.Expanded) error {
	client, err := mcpclient.NewHTTPClient(expanded, s.client)
	if err != nil {
		return err
	}
	s.setTools(declaredTools(&s.declared), 0)
	s.setStatus(StatusConnected, "", nil, &restLink{server: expanded, client: client})
	<-ctx.Done()
	client.CloseIdleConnections()
	return nil
}

func (l *restLink) call(ctx context.Context, t *tool, c *toolCall) (*reply, error) {
	body := *c.action
	body.Action, body.Input = t.Action, c.input
	if body.Response.Format == "" {
		body.Response.Format = "auto"
	}
	body.Response.Stream = false
	raw, err := strictjson.Marshal(body)
	if err != nil {
		return nil, &mcpclient.CallError{Text: err.Error(), NotSent: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.URL, bytes.NewReader(raw))
	if err != nil {
		return nil, &mcpclient.CallError{Text: l.server.Hide(err.Error()), NotSent: true}
	}
	// Without GetBody, net/http does not send the request again after a stale connection
	// broke: whether to repeat a call is decided by the caller.
	req.GetBody = nil
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, l.sendError(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body) // bounded by the client
	if err != nil {
		return nil, l.sendError(ctx, err)
	}
	if (resp.StatusCode < 200 || resp.StatusCode > 299) && parseToolError(data) == nil {
		return nil, newStatusError(resp.StatusCode)
	}
	return parseRESTReply(data), nil
}

func (l *restLink) sendError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	dial, ok := errors.AsType[*net.OpError](err)
	return &mcpclient.CallError{Text: l.server.Hide(err.Error()), NotSent: ok && dial.Op == "dial"}
}

// newStatusError returns the error of a reply without a result.
func newStatusError(status int) *mcpclient.CallError {
	return &mcpclient.CallError{
		Text:    fmt.Sprintf("the server answered %d %s", status, http.StatusText(status)),
		Reply:   status < 500 && status != http.StatusTooManyRequests,
		NotSent: status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable,
	}
}

// parseRESTReply converts a body. One with an error_code is an error of the tool.
func parseRESTReply(data []byte) *reply {
	if failed := parseToolError(data); failed != nil {
		return &reply{failed: failed}
	}
	var result contract.ActionResult
	if err := strictjson.UnmarshalAllowUnknown(data, &result); err != nil {
		return &reply{failed: severeError(contract.ActionBadResult, "the reply of the server is no result: "+err.Error(), "")}
	}
	if string(result.Structured) == "null" {
		result.Structured = nil
	}
	switch result.Type {
	case contract.ActionText, contract.ActionImage, contract.ActionAudio, contract.ActionToolResult:
		return &reply{result: result}
	}
	return &reply{failed: severeError(contract.ActionBadResult, fmt.Sprintf("the reply of the server has the unknown type %q", result.Type), "")}
}
