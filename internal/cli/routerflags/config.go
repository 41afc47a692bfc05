// Package routerflags contains the flags with which a command selects a router: by its
// configuration, its URL, its data directory or its log. It opens what they select.
package routerflags

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/config"
)

// Config are the flags of commands that need the configuration of a router. They
// override the environment, which overrides the file.
type Config struct {
	ConfigFile, RegistryFile, MCPFile, listen, dataDir, logLevel string
}

// Register adds the flags; serving adds those that only a serving router needs.
func (f *Config) Register(cmd *cobra.Command, serving bool) {
	AddConfigFlag(cmd, &f.ConfigFile)
	AddRegistryFlag(cmd, &f.RegistryFile)
	addDataDirFlag(cmd, &f.dataDir, "the store and the signing keys")
	if !serving {
		return
	}
	AddMCPFlag(cmd, &f.MCPFile)
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "`HOST:PORT` to listen on; port 0 picks one (default 127.0.0.1:8080)")
	flags.StringVar(&f.logLevel, "log-level", "", "`LEVEL` of the log: debug, info, warn or error (default info)")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(
		[]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)))
}

// ConfigPath returns the named configuration file, or "".
func (f *Config) ConfigPath() string {
	return cmp.Or(f.ConfigFile, os.Getenv(config.EnvPrefix+"_CONFIG"))
}

// LoadConfig reads file and environment, applies the flags and validates the result.
func (f *Config) LoadConfig() (config.Config, error) {
	cfg, err := config.Load(f.ConfigPath(), os.LookupEnv)
	if err != nil {
		return cfg, err
	}
	for _, o := range []struct {
		flag string
		key  *string
	}{
		{f.RegistryFile, &cfg.Registry.File},
		{f.MCPFile, &cfg.MCP.File},
		{f.listen, &cfg.Listen},
		{f.dataDir, &cfg.DataDir},
		{f.logLevel, &cfg.Telemetry.LogLevel},
	} {
		if o.flag != "" {
			*o.key = o.flag
		}
	}
	err = cfg.ValidateFile(f.ConfigPath())
	return cfg, err
}

const configFlag = "config"

// AddConfigFlag adds the flag --config.
func AddConfigFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, configFlag, "", "configuration `FILE` (default caprouter.yaml if it exists)")
	cmdline.MustSucceed(cmd.MarkFlagFilename(configFlag, cmdline.YAMLExtensions()...))
}

// AddRegistryFlag adds the flag --registry.
func AddRegistryFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "registry", "", "capability registry `FILE` (default capabilities.yaml)")
	cmdline.MustSucceed(cmd.MarkFlagFilename("registry", cmdline.YAMLExtensions()...))
}

// AddMCPFlag adds the flag --mcp.
func AddMCPFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "mcp", "", "registry `FILE` of MCP servers (default $MCP_REGISTRY_FILE or "+config.DefaultMCPFile+")")
	cmdline.MustSucceed(cmd.MarkFlagFilename("mcp", "json"))
}
