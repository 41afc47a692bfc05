package main

import (
	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
)

func newServeCommand() *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the router",
		Long: "Run the router. With no configuration it listens on 127.0.0.1:8080, reads capabilities.yaml if there is\n" +
			"one, and classifies with a model if GEMINI_API_KEY is set, else with the embedded lexical classifier.\n" +
			"Flags override CAPROUTER_* in the environment, which overrides the file; for example\n" +
			"CAPROUTER_DISPATCH_TIMEOUT_MS sets dispatch.timeout_ms. caprouter init writes files to start from.\n\n" +
			"The registry is reloaded if its file changes and on SIGHUP; an invalid file changes nothing. SIGTERM or\n" +
			"Ctrl-C starts a graceful shutdown; a second one ends the process at once.",
		Example: `  caprouter serve --registry capabilities.yaml
  caprouter serve --listen 127.0.0.1:0 --log-level warn
  caprouter serve --config /etc/caprouter/caprouter.yaml`,
		Args: argsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.loadConfig()
			if err != nil {
				return err
			}
			server, err := app.Start(cmd.Context(), cfg, app.Options{LogOutput: cmd.ErrOrStderr(), Version: buildVersion(), OwnProcess: true})
			if err != nil {
				return explainMissingRegistry(err, &cfg)
			}
			return server.Wait()
		},
	}
	flags.register(cmd, true)
	return cmd
}
