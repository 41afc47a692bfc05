package gateway

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/pins"
	"github.com/caprouter/caprouter/internal/broadcast"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/limits"
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
	DrainTimeout   time.Duration // default 30 s, for calls of a server that is removed
	MinBackoff     time.Duration // default 1 s, before the second attempt to connect
	Breaker        resilience.BreakerConfig

	RateLimit limits.Rate // of each caller and tool; zero = none
	Pins      *pins.Guard // nil = pins.FirstUse, in memory
	Recorder  Recorder    // nil = calls are not recorded
	// Guard decides about the addresses of servers that are registered. Nil = public ones.
	Guard egress.AddressPolicy
	// Capabilities returns the mcp_capabilities of an agent, or false if there is no such
	// agent. It must not call the Gateway. Nil = there are no agents.
	Capabilities func(agentID string) ([]string, bool)

	wait func(ctx context.Context, d time.Duration) // before the next attempt to connect
}

func (c Config) withDefaults() Config {
	if c.Lookup == nil {
		c.Lookup = os.LookupEnv
	}
	if c.Client.Logger == nil {
		c.Client.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Pins == nil {
		c.Pins = pins.NewMemoryGuard()
	}
	if c.Recorder == nil {
		c.Recorder = noRecorder{}
	}
	if c.Capabilities == nil {
		c.Capabilities = func(string) ([]string, bool) { return nil, false }
	}
	if c.Guard == nil {
		c.Guard = egress.NewGuard()
	}
	if c.wait == nil {
		c.wait = func(ctx context.Context, d time.Duration) { resilience.Sleep(ctx, d) }
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&c.ConnectTimeout, 30 * time.Second},
		{&c.CallTimeout, 30 * time.Second},
		{&c.ProbeTimeout, 10 * time.Second},
		{&c.ProbeInterval, 300 * time.Second},
		{&c.DrainTimeout, 30 * time.Second},
		{&c.MinBackoff, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	return c
}

// Gateway holds the connections to all servers. Its methods may be called from any
// goroutine.
type Gateway struct {
	cfg      Config
	group    *run.Group
	events   *eventHub
	bindings *bindings
	changes  broadcast.Signal

	mu      sync.Mutex                // of changes of the servers
	servers atomic.Pointer[[]*server] // ordered by id; the slice is immutable
}

// Start connects to all servers of a file in the background. Close ends the connections;
// they also end with the context. The declarations are those that package mcpfile has
// accepted.
func Start(ctx context.Context, servers []mcpfile.Server, cfg Config) (*Gateway, error) {
	g := &Gateway{cfg: cfg.withDefaults(), group: run.New(ctx), events: newEventHub()}
	g.bindings = newBindings(g)
	g.servers.Store(&[]*server{})
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*server, len(servers))
	for i, declared := range servers {
		var err error
		if list[i], err = g.newServer(declared, OriginFile); err != nil {
			return nil, err
		}
	}
	g.setServers(list)
	g.connect(list)
	return g, nil
}

// Close ends all connections, processes and subscriptions.
func (g *Gateway) Close() error {
	g.group.Stop(nil)
	err := g.group.Wait()
	g.events.close()
	return err
}

// errConnecting is the error of a server that is not connected before the context ends.
var errConnecting = errors.New("the connection is being established")

// WaitReady returns when each server is connected or has failed once, or when the context
// ends. It does not wait for servers that start lazily.
func (g *Gateway) WaitReady(ctx context.Context) {
	for _, s := range *g.servers.Load() {
		select {
		case <-s.attempted.done():
		case <-ctx.Done():
		}
	}
}

// WaitServer returns the state of the server when it is connected or has failed, or when
// the context ends. It starts a server that is started lazily.
func (g *Gateway) WaitServer(ctx context.Context, name string) (ServerInfo, bool) {
	s := g.find(name)
	if s == nil {
		return ServerInfo{}, false
	}
	_, _ = s.waitLink(ctx) // the state has the error
	return s.info(), true
}

// ServerInfo is the state of a server.
type ServerInfo struct {
	Name      string         `json:"name"`
	Transport string         `json:"transport"`
	Config    mcpfile.Public `json:"config"`
	Origin    string         `json:"origin"` // "file" or "registration"
	Status    string         `json:"status"` // "disconnected", "connecting", "connected" or "error"
	State     string         `json:"state,omitempty"`
	Error     string         `json:"error,omitempty"`
	Protocol  string         `json:"protocol,omitempty"`
	ToolCount int            `json:"toolCount"`
	Tools     []Tool         `json:"tools"`

	// Prompts, Resources and ResourceTemplates are those that are passed on. If ReadsResources,
	// the server may have further resources. Completes means that it completes arguments.
	Prompts           []Entry `json:"-"`
	Resources         []Entry `json:"-"`
	ResourceTemplates []Entry `json:"-"`
	ReadsResources    bool    `json:"-"`
	Completes         bool    `json:"-"`

	Capabilities []string `json:"capabilities,omitempty"` // as its file declares them
	Prefix       *string  `json:"-"`                      // of the names of its tools for MCP clients; nil = not declared

	// OverridesRegistration means that a server of this name was registered, and is not used
	// because the file declares this one. A Gateway keeps no such registrations: its user sets
	// the field.
	OverridesRegistration bool `json:"overrides_registration,omitzero"`
}

// actionNames returns the names of all actions.
func (g *Gateway) actionNames() []string {
	var names []string
	for _, s := range *g.servers.Load() {
		for _, t := range s.info().Tools {
			names = append(names, t.Action)
		}
	}
	slices.Sort(names)
	return names
}
