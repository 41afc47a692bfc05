package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
)

// configFlags are the flags of the commands that run a router themselves. They
// override the environment, which overrides the file.
type configFlags struct {
	config, registry, listen, dataDir, logLevel string
}

func (f *configFlags) register(cmd *cobra.Command, serving bool) {
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "configuration `FILE` (default caprouter.yaml, when there is one)")
	flags.StringVar(&f.registry, "registry", "", "capability registry `FILE` (default capabilities.yaml)")
	flags.StringVar(&f.dataDir, "data-dir", "", "`DIR` that holds the store and the signing key (default caprouter-data)")
	must(cmd.MarkFlagFilename("config", yamlExtensions()...))
	must(cmd.MarkFlagFilename("registry", yamlExtensions()...))
	must(cmd.MarkFlagDirname("data-dir"))
	if !serving {
		return
	}
	flags.StringVar(&f.listen, "listen", "", "`HOST:PORT` to listen on; port 0 picks one (default 127.0.0.1:8080)")
	flags.StringVar(&f.logLevel, "log-level", "", "debug, info, warn or error (default info)")
	must(cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(
		[]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)))
}

// path is the configuration file that was named, "" for none.
func (f *configFlags) path() string {
	return cmp.Or(f.config, os.Getenv(app.EnvPrefix+"_CONFIG"))
}

// load reads file and environment, puts the flags on top and checks the whole.
func (f *configFlags) load() (app.Config, error) {
	cfg, err := app.LoadConfig(f.path(), os.LookupEnv)
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

// serverFlags are the flags of the commands that talk to a server.
type serverFlags struct{ url, tokenEnv string }

func (f *serverFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "`URL` of the router to talk to (default $CAPROUTER_URL)")
	cmd.Flags().StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the environment variable that holds the bearer token")
}

// server is the router that the flag or else the environment names, "" for none.
func (f *serverFlags) server(cmd *cobra.Command) string {
	if cmd.Flags().Changed("url") {
		return f.url
	}
	return os.Getenv(app.EnvPrefix + "_URL")
}

func yamlExtensions() []string { return []string{"yaml", "yml"} }

// completeYAML completes the one argument that is a registry file.
func completeYAML(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return yamlExtensions(), cobra.ShellCompDirectiveFilterFileExt
}

// must is for what fails only when this program names a flag it does not have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
