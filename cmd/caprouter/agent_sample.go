package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/demo"
)

func newAgentSampleCommand() *cobra.Command {
	var listen, router string
	cmd := &cobra.Command{
		Use:   "agent-sample",
		Short: "Run the agent of the registry that init writes",
		Long: "Run " + demo.SampleAgent + ", the agent of the registry that caprouter init writes. It accepts tasks over HTTP,\n" +
			"verifies their tokens with the keys of the router, and counts the words, characters and lines of the text\n" +
			"behind the first colon of a prompt, or of the input named text.\n\n" +
			"With the configuration that init writes, caprouter serve runs this agent itself (sample_agent).",
		Example: `  caprouter agent-sample
  caprouter agent-sample --listen 127.0.0.1:9200 --router http://127.0.0.1:8080`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if u, err := url.Parse(router); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return cmdline.UsageErrorf(cmd, "--router %q is not an absolute http or https URL, e.g. %s", router, restclient.DefaultURL)
			}
			listener, err := listenSample(cmd.Context(), listen)
			if err != nil {
				return fmt.Errorf("%w: choose another --listen", err)
			}
			router = strings.TrimSuffix(router, "/")
			out := cmd.ErrOrStderr()
			fmt.Fprintf(out, "%s listening on %s for tasks of %s\n", demo.SampleAgent, listener.Addr(), router)
			return demo.ServeSample(cmd.Context(), listener, demo.SampleConfig{
				RouterURL: router, Logger: slog.New(slog.NewTextHandler(out, nil)),
			})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", demo.SampleAddress, "`HOST:PORT` to listen on; port 0 picks one")
	cmd.Flags().StringVar(&router, "router", restclient.DefaultURL, "`URL` of the router whose tasks the agent accepts")
	return cmd
}

// listenSample opens the listener of the sample agent.
func listenSample(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("the sample agent cannot listen on %s: %w", addr, err)
	}
	return listener, nil
}
