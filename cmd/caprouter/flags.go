package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
)

// configFlags are the flags of commands that run a router. They override the
// environment, which overrides the file.
type configFlags struct {
	config, registry, listen, dataDir, logLevel string
}

func (f *configFlags) register(cmd *cobra.Command, serving bool) {
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration `FILE` (default caprouter.yaml if it exists)")
	flags.StringVar(&f.registry, "registry", "", "capability registry `FILE` (default capabilities.yaml)")
	flags.StringVar(&f.dataDir, "data-dir", "", "`DIR` with the store and the signing keys (default caprouter-data)")
	mustSucceed(cmd.MarkFlagFilename("config", yamlExtensions()...))
	mustSucceed(cmd.MarkFlagFilename("registry", yamlExtensions()...))
	mustSucceed(cmd.MarkFlagDirname("data-dir"))
	if !serving {
		return
	}
	flags.StringVar(&f.listen, "listen", "", "`HOST:PORT` to listen on; port 0 picks one (default 127.0.0.1:8080)")
	flags.StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error (default info)")
	mustSucceed(cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(
		[]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)))
}

// configPath returns the named configuration file, or "".
func (f *configFlags) configPath() string {
	return cmp.Or(f.config, os.Getenv(app.EnvPrefix+"_CONFIG"))
}

// loadConfig reads file and environment, applies the flags and validates the result.
func (f *configFlags) loadConfig() (app.Config, error) {
	cfg, err := app.LoadConfig(f.configPath(), os.LookupEnv)
	if err != nil {
		return cfg, err
	}
	for _, o := range []struct {
		flag string
		key  *string
	}{
		{f.registry, &cfg.Registry.File},
		{f.listen, &cfg.Listen},
		{f.dataDir, &cfg.DataDir},
		{f.logLevel, &cfg.Telemetry.LogLevel},
	} {
		if o.flag != "" {
			*o.key = o.flag
		}
	}
	err = cfg.Validate()
	return cfg, err
}

// serverFlags are the flags of commands that call a running router.
type serverFlags struct{ url, tokenEnv string }

func (f *serverFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "`URL` of a running router (default $CAPROUTER_URL)")
	cmd.Flags().StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the environment variable with the bearer token")
}

// routerURL returns the URL of the flag or of the environment, or "".
func (f *serverFlags) routerURL(cmd *cobra.Command) string {
	if cmd.Flags().Changed("url") {
		return f.url
	}
	return os.Getenv(app.EnvPrefix + "_URL")
}

func yamlExtensions() []string { return []string{"yaml", "yml"} }

func completeYAML(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return yamlExtensions(), cobra.ShellCompDirectiveFilterFileExt
}

// mustSucceed panics on errors of cobra about unknown flags, which are bugs of this
// program.
func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}
