package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// defaultListen is the default of Config.Listen.
const defaultListen = "127.0.0.1:0"

// Run runs an agent that registers itself at Config.RouterURL: it serves tasks,
// registers, sends heartbeats, and returns after a graceful shutdown when ctx ends.
// End ctx with the signal that stops the program:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//
// An agent that the router cannot reach sets Registration.Endpoint.Protocol to
// contract.ProtocolPull: Run then pulls tasks instead of serving them.
//
// See [Agent.KeepRegistered] for the registration and the shutdown. Run returns an
// error if the configuration is not valid, the address is in use, the router rejects
// the registration, or tasks were still in progress after DrainTimeout.
func Run(ctx context.Context, cfg Config, work Work) error {
	agent, err := New(cfg, work)
	if err != nil {
		return err
	}
	if agent.pulls() {
		return agent.pullRegistered(ctx)
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cmp.Or(cfg.Listen, defaultListen))
	if err != nil {
		return fmt.Errorf("agentkit: %w", err)
	}
	return agent.Serve(ctx, listener)
}

// Serve is [Run] for an agent with a listener of its own, which it closes. If the
// listener uses TLS, set Config.Registration.Endpoint.URL.
func (a *Agent) Serve(ctx context.Context, listener net.Listener) error {
	declared, err := a.declareListener(listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{
		Handler: a, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- server.Serve(listener)
	}()
	err = a.keepRegistered(ctx, declared, func(ctx context.Context) error { return a.shutdownServer(ctx, server) })
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(fmt.Errorf("agentkit: %w", serveErr), err)
	}
	return err
}

// declareListener returns the declaration with the URL of a server that listens on the
// address, unless it has a URL.
func (a *Agent) declareListener(addr net.Addr) (contract.Registration, error) {
	declared := a.registration.declared
	if a.registration.routerURL == "" {
		return declared, errors.New("agentkit: RouterURL is required for an agent that registers itself")
	}
	if declared.Endpoint.URL != "" {
		return declared, nil
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return declared, errors.New("agentkit: set Registration.Endpoint.URL, because the agent listens on every address of the host")
	}
	declared.Endpoint.URL = "http://" + addr.String() + a.path
	return declared, nil
}

// shutdownServer waits for the requests in progress. If ctx ends first, it cancels
// their tasks, waits briefly for the answers, and closes the connections.
func (a *Agent) shutdownServer(ctx context.Context, server *http.Server) error {
	err := server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	a.tasks.cancelAll()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalGrace)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // some work ignores its context; err is returned
	}
	return fmt.Errorf("tasks were still in progress: %w", err)
}
