package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/docs"
	"github.com/caprouter/caprouter/internal/run"
)

// jwksPath is the path of the key set of a router.
const jwksPath = "/.well-known/jwks.json"

// taskPath is where the agents accept tasks, as in registry.yaml.
const taskPath = "/tasks"

// shutdownTimeout bounds how long running tasks may take after the demo stops.
const shutdownTimeout = 2 * time.Second

// URLs maps agent ids to the URLs at which the agents accept tasks.
type URLs map[string]string

// StartAgents starts the sample agents, each on a free port of 127.0.0.1. They
// listen when it returns, and until the group stops. They trust tokens signed by
// the keys at jwksURL, which they fetch with the first task, so that the router can
// start later.
func StartAgents(ctx context.Context, g *run.Group, jwksURL string) (URLs, error) {
	index, err := newSearchIndex(docs.FS)
	if err != nil {
		return nil, err
	}
	keys := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{IdleConnTimeout: 30 * time.Second}}
	urls := URLs{}
	var started []*agentServer
	for id, work := range map[string]agentkit.Work{
		QualityAgent: reviewCode,
		RAGAgent:     answerFrom(index),
		BillingAgent: analyseCosts,
	} {
		s, err := listenAgent(ctx, agentkit.Config{AgentID: id, JWKSURL: jwksURL, Path: taskPath, Client: keys}, work)
		if err != nil {
			for _, s := range started {
				err = errors.Join(err, s.listener.Close())
			}
			return nil, fmt.Errorf("agent %s: %w", id, err)
		}
		started = append(started, s)
		urls[id] = "http://" + s.listener.Addr().String() + taskPath
	}
	for _, s := range started {
		g.Go("serve "+s.id, s.serveTasks)
	}
	g.Go("stop agents", func(ctx context.Context) error {
		<-ctx.Done()
		defer keys.CloseIdleConnections()
		return shutdownAgents(context.WithoutCancel(ctx), started)
	})
	return urls, nil
}

// agentServer serves one agent.
type agentServer struct {
	id       string
	server   *http.Server
	listener net.Listener
}

// listenAgent returns an agent on a free port of 127.0.0.1.
func listenAgent(ctx context.Context, cfg agentkit.Config, work agentkit.Work) (*agentServer, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return newAgentServer(listener, cfg, work)
}

// newAgentServer closes the listener if it fails.
func newAgentServer(listener net.Listener, cfg agentkit.Config, work agentkit.Work) (*agentServer, error) {
	handler, err := agentkit.New(cfg, work)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &agentServer{
		id: cfg.AgentID,
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
		},
		listener: listener,
	}, nil
}

func (s *agentServer) serveTasks(context.Context) error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdownAgents waits for running tasks, then closes the connections that are left.
func shutdownAgents(ctx context.Context, agents []*agentServer) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	var errs []error
	for _, a := range agents {
		if err := a.server.Shutdown(ctx); err != nil {
			errs = append(errs, err, a.server.Close())
		}
	}
	return errors.Join(errs...)
}
