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
			"one, and classifies with a model when GEMINI_API_KEY is set, else with the embedded lexical classifier.\n" +
			"A flag goes before CAPROUTER_* in the environment, which goes before the file; dispatch.timeout_ms is\n" +
			"CAPROUTER_DISPATCH_TIMEOUT_MS there. caprouter init writes files to start from.\n\n" +
			"The registry is reloaded when its file changes and on SIGHUP; a file with mistakes changes nothing.\n" +
			"SIGTERM or Ctrl-C lets running requests end; a second one does not wait for them.",
		Example: `  caprouter serve --registry capabilities.yaml
  caprouter serve --listen 127.0.0.1:0 --log-level warn
  caprouter serve --config /etc/caprouter/caprouter.yaml`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.load()
			if err != nil {
				return err
			}
			server, err := app.Start(cmd.Context(), cfg, app.Options{LogOutput: cmd.ErrOrStderr(), Version: buildVersion(), OwnProcess: true})
			if err != nil {
				return missingRegistry(err, &cfg)
			}
			return server.Wait()
		},
	}
	flags.register(cmd, true)
	return cmd
}
