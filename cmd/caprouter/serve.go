package main

import (
	"context"
	"errors"
	"net"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/run"
)

func newServeCommand() *cobra.Command {
	var flags routerflags.Config
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the router",
		Long: "Run the router. With no configuration it listens on 127.0.0.1:8080, reads capabilities.yaml and mcp.json\n" +
			"if they exist, and classifies with a model if GEMINI_API_KEY is set, else with the embedded lexical\n" +
			"classifier.\n" +
			"Flags override CAPROUTER_* in the environment, which overrides the file; for example\n" +
			"CAPROUTER_DISPATCH_TIMEOUT_MS sets dispatch.timeout_ms. caprouter init writes files to start from.\n\n" +
			"Both registries are reloaded if their files change and on SIGHUP; an invalid file changes nothing. SIGTERM or\n" +
			"Ctrl-C starts a graceful shutdown; a second one ends the process at once.",
		Example: `  caprouter serve --registry capabilities.yaml
  caprouter serve --listen 127.0.0.1:0 --log-level warn
  caprouter serve --config /etc/caprouter/caprouter.yaml`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.LoadConfig()
			if err != nil {
				return err
			}
			supervisor, err := mcpSupervisor()
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, app.Options{
				LogOutput: cmd.ErrOrStderr(), Version: buildVersion(), OwnProcess: true, Supervisor: supervisor,
			})
		},
	}
	flags.Register(cmd, true)
	return cmd
}

// serve runs the router, and the sample agent if the configuration sets its address.
func serve(ctx context.Context, cfg config.Config, opts app.Options) (err error) {
	var sample net.Listener
	var sampleErr error
	if cfg.SampleAgent != "" {
		// Before the router listens, so that the first request finds the agent.
		sample, sampleErr = listenSample(ctx, cfg.SampleAgent)
	}
	server, err := app.Start(ctx, cfg, opts)
	if err != nil {
		if sample != nil {
			err = errors.Join(err, sample.Close())
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // SIGTERM or Ctrl-C during the start: nothing runs, and nothing was accepted
		}
		return routerflags.ExplainMissingRegistry(err, &cfg)
	}
	if sampleErr != nil { // for example because caprouter agent-sample runs already
		server.Logger().Warn("sample_agent is not started", "error", sampleErr)
	}
	if sample == nil {
		return server.Wait()
	}
	agents := run.New(context.WithoutCancel(ctx)) // stopped after the router, which finishes its tasks first
	agents.Go("sample agent", func(ctx context.Context) error {
		return demo.ServeSample(ctx, sample, demo.SampleConfig{RouterURL: server.URL(), Issuer: cfg.Auth.Issuer, Logger: server.Logger()})
	})
	err = server.Wait()
	agents.Stop(nil)
	return errors.Join(err, agents.Wait())
}
