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
	"github.com/caprouter/caprouter/internal/demo/docsearch"
	"github.com/caprouter/caprouter/internal/run"
)

// taskPath is where the agents take tasks; registry.yaml says the same.
const taskPath = "/tasks"

// URLs says where each agent takes its tasks, by agent id.
type URLs map[string]string

// StartAgents starts the sample agents, each on a free port of 127.0.0.1. They
// answer when it returns, and until the group stops. They trust tokens signed by
// the keys at jwksURL, which they fetch with the first task; the router need not
// be there before.
func StartAgents(ctx context.Context, g *run.Group, jwksURL string) (URLs, error) {
	work, err := works()
	if err != nil {
		return nil, err
	}
	keys := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{IdleConnTimeout: 30 * time.Second}}
	urls := URLs{}
	var open []*served
	for id := range work {
		s, err := listen(ctx, agentkit.Config{AgentID: id, JWKSURL: jwksURL, Path: taskPath, Client: keys}, work[id])
		if err != nil {
			for _, s := range open {
				err = errors.Join(err, s.listener.Close())
			}
			return nil, fmt.Errorf("agent %s: %w", id, err)
		}
		open = append(open, s)
		urls[id] = "http://" + s.listener.Addr().String() + taskPath
	}
	for _, s := range open {
		g.Go("serve "+s.id, s.serve)
	}
	g.Go("stop agents", func(ctx context.Context) error {
		<-ctx.Done()
		defer keys.CloseIdleConnections()
		return stop(context.WithoutCancel(ctx), open)
	})
	return urls, nil
}

// works is what each agent does.
func works() (map[string]agentkit.Work, error) {
	sections, err := docsearch.Load(docs.FS)
	if err != nil {
		return nil, err
	}
	return map[string]agentkit.Work{
		QualityAgent: review,
		RAGAgent:     answerFrom(docsearch.New(sections)),
		BillingAgent: analyse,
	}, nil
}

// served is an agent's server and the port it has.
type served struct {
	id       string
	server   *http.Server
	listener net.Listener
}

func listen(ctx context.Context, cfg agentkit.Config, work agentkit.Work) (*served, error) {
	handler, err := agentkit.New(cfg, work)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &served{
		id: cfg.AgentID,
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
		},
		listener: listener,
	}, nil
}

func (s *served) serve(context.Context) error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// drain is how long tasks that are being done may take once the demo stops.
const drain = 2 * time.Second

// stop lets the servers finish what they are at, and closes what is left.
func stop(ctx context.Context, agents []*served) error {
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	var errs []error
	for _, a := range agents {
		if err := a.server.Shutdown(ctx); err != nil {
			errs = append(errs, err, a.server.Close())
		}
	}
	return errors.Join(errs...)
}
