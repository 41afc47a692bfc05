package gateway

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
)

// Config of a Gateway. All but Client may be zero.
type Config struct {
	Client mcpclient.Config
	Lookup func(name string) (string, bool) // environment variables; nil = os.LookupEnv

	ConnectTimeout time.Duration // default 30 s; also for listing the tools
	CallTimeout    time.Duration // default 30 s, of one attempt
	ProbeTimeout   time.Duration // default 10 s
	ProbeInterval  time.Duration // default 300 s
	MinBackoff     time.Duration // default 1 s, before the second attempt to connect
	Breaker        resilience.BreakerConfig
}

func (c Config) withDefaults() Config {
	if c.Lookup == nil {
		c.Lookup = os.LookupEnv
	}
	if c.Client.Logger == nil {
		c.Client.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.ConnectTimeout, 30 * time.Second},
		{&c.CallTimeout, 30 * time.Second},
		{&c.ProbeTimeout, 10 * time.Second},
		{&c.ProbeInterval, 300 * time.Second},
		{&c.MinBackoff, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	return c
}

// Gateway holds the connections to all servers of a file. Its methods may be called from
// any goroutine.
type Gateway struct {
	cfg     Config
	servers []*server // ordered by id
	group   *run.Group
}

// Start connects to all servers in the background. Close ends the connections; they also
// end with the context.
func Start(ctx context.Context, servers []mcpfile.Server, cfg Config) *Gateway {
	g := &Gateway{cfg: cfg.withDefaults(), group: run.New(ctx)}
	for _, declared := range servers {
		s := newServer(declared, &g.cfg)
		g.servers = append(g.servers, s)
		g.group.Go("MCP server "+declared.ID, func(ctx context.Context) error {
			s.maintain(ctx)
			return nil
		})
	}
	return g
}

// Close ends all connections and processes.
func (g *Gateway) Close() error {
	g.group.Stop(nil)
	return g.group.Wait()
}

// errNotTried is the error of a server whose first connection is not complete.
var errNotTried = errors.New("the connection is being established")

// WaitReady returns when each server is connected or has failed once, or when the context
// ends.
func (g *Gateway) WaitReady(ctx context.Context) {
	for _, s := range g.servers {
		select {
		case <-s.tried:
		case <-ctx.Done():
		}
	}
}

// ServerInfo is the state of a server.
type ServerInfo struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`
	Status    string `json:"status"` // "disconnected", "connecting", "connected" or "error"
	State     string `json:"state,omitempty"`
	Error     string `json:"error,omitempty"`
	Protocol  string `json:"protocol,omitempty"`
	ToolCount int    `json:"tool_count"`
	Tools     []Tool `json:"tools"`

	Capabilities []string `json:"capabilities,omitempty"` // as its file declares them
}

// Servers returns the state of all servers, ordered by name.
func (g *Gateway) Servers() []ServerInfo {
	infos := make([]ServerInfo, len(g.servers))
	for i, s := range g.servers {
		infos[i] = s.info()
	}
	return infos
}

// actionNames returns the names of all actions.
func (g *Gateway) actionNames() []string {
	var names []string
	for _, s := range g.servers {
		for _, t := range s.info().Tools {
			names = append(names, t.Action)
		}
	}
	slices.Sort(names)
	return names
}
