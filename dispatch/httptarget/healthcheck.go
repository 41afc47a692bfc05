package httptarget

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

var _ dispatch.HealthChecker = (*Target)(nil)

// maxHealthReply bounds what is read of the reply to a health check, so that the connection
// can be reused.
const maxHealthReply = 4 << 10

// CheckHealth sends GET to the agent's health.path, or contract.DefaultHealthPath, at the
// host of its endpoint, and returns an error unless the status is 2xx. The request has
// no token.
func (t *Target) CheckHealth(ctx context.Context, agent *contract.RegistryEntry) error {
	at, err := parseEndpoint(agent.Endpoint.URL, t.plainHTTP)
	if err != nil {
		return err
	}
	transport := t.trusted
	if agent.Origin != contract.OriginFile {
		if err := t.checkGuard(at); err != nil {
			return err
		}
		transport = t.guarded
	}
	at.Path, at.RawPath, at.RawQuery = agent.Health.Path, "", ""
	if at.Path == "" {
		at.Path = contract.DefaultHealthPath
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return err
	}
	req.Header["User-Agent"] = t.template.Header["User-Agent"]
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, maxHealthReply)
		_ = resp.Body.Close()
		if resp.StatusCode < 200 || resp.StatusCode > 299 {
			err = fmt.Errorf("it answered %d", resp.StatusCode)
		}
	}
	if err != nil && ctx.Err() != context.Canceled {
		t.log.Warn("health check failed", "agent", agent.ID, "address", at.String(), "error", err)
	}
	return err
}
