package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/fleet"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/registry"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/router"
)

// Server is a running router. Wait must be called to release its resources.
type Server struct {
	addr   string
	core   *serverCore
	group  *run.Group
	hangup chan os.Signal
}

// Start opens all resources, listens, and returns when the server routes requests. It
// serves until ctx ends, followed by a graceful shutdown; Wait returns when that is
// done. If Start returns an error, nothing is left running.
func Start(ctx context.Context, cfg config.Config, opts Options) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, used, err := openSigningKeys(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	c, err := newServerCore(ctx, cfg, opts, keys, used)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, c, opts)
	if err != nil {
		return nil, errors.Join(err, c.closeResources(ctx))
	}
	return s, nil
}

// newServer listens and returns when the server routes requests.
func newServer(ctx context.Context, c *serverCore, opts Options) (*Server, error) {
	if err := c.openRegistry(ctx); err != nil {
		return nil, err
	}
	server, err := c.newHTTPServer(opts.Version)
	if err != nil {
		return nil, err
	}
	listener := opts.Listener
	if listener == nil {
		if listener, err = openListener(ctx, c.cfg.Listen); err != nil {
			return nil, err
		}
	}
	s := &Server{addr: listener.Addr().String(), core: c, group: run.New(ctx), hangup: make(chan os.Signal, 1)}
	signal.Notify(s.hangup, syscall.SIGHUP) // before the address is known, because the signal would end the process
	c.setPublicURL(s.addr)
	c.access.logWarnings(c, s.addr)
	c.access.startReloading(c, s.group)
	c.persistence.startBackground(s)
	c.views.startBuilding(s.group)
	c.mcp.Start() // before the first goal, which would end because there are no servers
	s.group.Go("serve", func(ctx context.Context) error { return server.Serve(ctx, listener) })
	if err := s.waitForView(ctx); err != nil {
		return nil, err
	}
	mode, why := c.classifierMode()
	//nolint:sloglint // scripts look for this line, with the address in the text
	c.log.Info("listening on "+s.addr, "classifier", mode, "classifier_because", why, "auth", c.cfg.Auth.Mode,
		"agents", len(c.router.View().Catalogue.Agents), "registry_version", c.router.View().Catalogue.Version)
	c.logRateLimits()
	s.startBackground()
	return s, nil
}

// startBackground starts the background work of a server that routes.
func (s *Server) startBackground() {
	c := s.core
	view := c.router.View()
	s.group.Go("describe the lexical model", func(context.Context) error {
		c.logLearning(view)
		return nil
	})
	c.persistence.startCounting(s)
	if c.cfg.MCP.HotReload {
		s.group.Go("watch the registry of MCP servers", c.mcp.Watch)
	}
	if c.persistence.shared {
		s.group.Go("registered MCP servers of other replicas", c.mcp.FollowPeers)
	}
	s.group.Go("check the capabilities of agents", c.agentCheck.run)
	s.group.Go("orchestrations", c.runs.Run)
	s.group.Go("watch registry", c.watchRegistry)
	s.group.Go("check the health of agents", c.dispatcher.RunHealthChecks)
	s.group.Go("messages of other replicas", func(ctx context.Context) error {
		_ = c.router.FollowPeers(ctx) // until ctx ends
		return nil
	})
	c.persistence.members.OnMemberDead(c.router.TriggerTakeOver)
	if c.persistence.shared {
		s.group.Go("audit logs of other replicas", func(ctx context.Context) error { return closeDeadChains(ctx, c) })
	}
	s.group.Go("open requests", func(ctx context.Context) error { return executeOpenRequests(ctx, c.router) })
	s.group.Go("reload on SIGHUP", func(ctx context.Context) error { return reloadOnHangup(ctx, s.hangup, c.file.Reload, c.mcp.ReloadFile) })
}

// executeOpenRequests resumes the stored requests of earlier processes, and then of
// processes that end meanwhile. When ctx ends, it closes the router, during the graceful
// shutdown of the HTTP server, so that work that ends in time need not be resumed.
func executeOpenRequests(ctx context.Context, r *router.Router) error {
	if err := r.Resume(ctx); err != nil {
		return err
	}
	_ = r.TakeOver(ctx) // until ctx ends
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	r.Close(ctx)
	return nil
}

// waitForView returns when the first View is installed. Until then the server
// reports that it is starting. If the server stops before, waitForView waits for
// the end and returns the reason.
func (s *Server) waitForView(ctx context.Context) error {
	stopping := make(chan struct{})
	s.group.Go("wait for the first view", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			close(stopping)
		case <-s.core.views.ready:
		}
		return nil
	})
	select {
	case <-s.core.views.ready:
		return nil
	case <-stopping:
		signal.Stop(s.hangup)
		return cmp.Or(s.group.Wait(), context.Cause(ctx))
	}
}

// Addr returns the address of the listener, host:port.
func (s *Server) Addr() string { return s.addr }

// URL returns the base URL at which agents reach the server, without a trailing slash.
func (s *Server) URL() string { return *s.core.baseURL.Load() }

// Logger returns the log of the server.
func (s *Server) Logger() *slog.Logger { return s.core.log }

// Wait returns when the server has stopped: nil after a graceful shutdown, else the
// reason.
func (s *Server) Wait() error {
	err := s.group.Wait()
	signal.Stop(s.hangup) // not during the graceful shutdown: see Notify
	err = errors.Join(err, s.core.closeResources(context.Background()))
	s.core.log.Info("stopped")
	return err
}

// setPublicURL sets the base URL of callbacks.
func (c *serverCore) setPublicURL(addr string) {
	public := strings.TrimSuffix(c.cfg.PublicURL, "/")
	if public == "" {
		scheme := "http://"
		if c.cfg.TLS.Enabled() {
			scheme = "https://"
		}
		public = scheme + addr
	}
	c.baseURL.Store(&public)
}

func openListener(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen: %s is in use: stop what listens there, or choose another --listen", addr)
	}
	return l, err
}

// openRegistryFile loads the registry file, which takes 70 ms for 1,000 agents with examples.
func openRegistryFile(cfg *config.Registry, logger *slog.Logger) (*registry.File, error) {
	path, optional := cfg.FilePath()
	return registry.OpenFile(registry.FileConfig{Path: path, Optional: optional, Logger: logger})
}

// openRegistry makes the first version of the registry of its sources.
func (c *serverCore) openRegistry(ctx context.Context) (err error) {
	c.views = newViewBuilder(storedModels(c.cfg.DataDir, c.log), c.dispatcher, c.installView)
	cfg := fleet.Config{Bucket: c.persistence.buckets.agents, Operator: c.operatorDefinition, CheckAddress: c.target.CheckAddress, OnChange: c.persistence.recordFleetChange(c.log), Logger: c.log}
	if c.cfg.Store.URL != "" {
		cfg.Peers = c.persistence.store
	}
	c.fleet, err = fleet.Open(ctx, cfg)
	if err != nil {
		return err
	}
	reportReload := func(s *capabilities.Snapshot, err error) {
		c.telemetry.Metrics().RecordRegistryLoad(err == nil, len(s.Catalogue.Agents))
	}
	c.registry, err = registry.New(registry.Config{Apply: c.views.Update, Report: reportReload, Logger: c.log}, c.file, c.fleet)
	if err != nil {
		return err
	}
	if s := c.registry.Current(); len(s.Catalogue.Agents) == 0 && len(s.Fleet.Grants) == 0 {
		path, _ := c.cfg.Registry.FilePath()
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("there is no registry file: every request is unsupported until it exists", "path", path)
		} else {
			c.log.Warn("the registry declares no agent and grants nothing: every request is unsupported", "path", path)
		}
	}
	return nil
}

// operatorDefinition returns the last valid content of the registry file.
func (c *serverCore) operatorDefinition() *capabilities.Definition {
	d, _ := c.file.State() // the registry reports the error
	return d
}

// watchRegistry keeps the registry up to date with its sources. Agents may register
// themselves even if the file is not watched.
func (c *serverCore) watchRegistry(ctx context.Context) error {
	if c.cfg.Registry.HotReload {
		return c.registry.Run(ctx)
	}
	return c.fleet.Run(ctx)
}

// reloadOnHangup reloads files on every SIGHUP. Their owners log errors and report them in
// their status.
func reloadOnHangup(ctx context.Context, hangup <-chan os.Signal, reload ...func() error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
			for _, reload := range reload {
				_ = reload()
			}
		}
	}
}

// newHTTPServer returns the HTTP server with the REST interface and that for MCP clients.
func (c *serverCore) newHTTPServer(version string) (*httpserver.Server, error) {
	leases, err := c.newLeases()
	if err != nil {
		return nil, err
	}
	acts := actRecorder{c.persistence.auditLog, c.log}
	servers := auditedHost{c.mcp, acts}
	api, err := rest.New(rest.Config{
		ClassifyLimit: c.access.classifyLimit, CheckLimit: c.access.checkLimit, ReadLimit: c.access.readLimit,
		RegisterLimit: c.access.registerLimit, AnswerByDefault: c.answersByDefault(),
	}, rest.Deps{
		Router:           c.router,
		Requests:         c.router.History(),
		Decisions:        c.router.History(),
		AuditLog:         c.router.History(),
		Feedback:         c.router.History(),
		Tasks:            c.router.Callbacks(),
		Leases:           leases,
		Tickets:          auditedTickets{c.persistence.tickets, acts},
		Fleet:            c.fleet,
		Tools:            c.mcp,
		MCPServers:       servers,
		MCPRegistrations: servers,
		MCPApprovals:     servers,
		MCPBindings:      c.mcp,
		Runs:             c.runs,
		RunLister:        c.runs,
		RunControl:       c.runs,
		RunEraser:        c.runs.Eraser(),
		Registry:         c.snapshot,
		AgentState:       c.agentState,
		Readiness:        c.readiness,
		JWKS:             c.keys.JWKS,
		Metrics:          c.telemetry.Handler(),
		Meter:            c.telemetry.Metrics(),
		TaskTokens:       c.verifyTaskToken,
	})
	if err != nil {
		return nil, err
	}
	cfg := httpserver.Config{
		NewID: router.NewID, MaxInFlight: c.cfg.Limits.MaxInFlight, MaxSchedulingDelay: c.cfg.Limits.MaxSchedulingDelay(), TLS: c.access.certificate.tlsConfig(),
		Logger: c.log, Meter: c.telemetry.Metrics(), Tracer: c.telemetry.Tracer(),
	}
	if c.access.verifier != nil {
		cfg.Auth = c.access.verifier
	}
	srv, err := httpserver.New(cfg)
	if err != nil {
		return nil, err
	}
	for _, mounted := range append([]httpserver.API{api}, c.newMCPAPIs(version)...) {
		if err := srv.Mount(mounted); err != nil {
			return nil, err
		}
	}
	return srv, nil
}

// newLeases returns the leases of agents that pull their tasks.
func (c *serverCore) newLeases() (*pulltarget.Leases, error) {
	return pulltarget.NewLeases(pulltarget.Config{
		Requests: c.persistence.requests, Offers: c.router.Callbacks().Offers(), Tasks: c.router, Tokens: c.issuer,
		Issuer: c.cfg.Auth.Issuer, PublicURL: c.publicURL, OnLease: c.telemetry.Metrics().RecordTaskLease, Logger: c.log,
	})
}

// verifyTaskToken verifies the token of an agent that sends a callback.
func (c *serverCore) verifyTaskToken(token string) (contract.TaskGrant, error) {
	return c.issuer.VerifyTaskToken(c.cfg.Auth.Issuer, token, time.Now())
}
