package main

import (
	"cmp"
	"io"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/config"
)

// configFlags are the flags of commands that need the configuration of a router. They
// override the environment, which overrides the file.
type configFlags struct {
	config, registry, mcp, listen, dataDir, logLevel string
}

func (f *configFlags) register(cmd *cobra.Command, serving bool) {
	addConfigFlag(cmd, &f.config)
	addRegistryFlag(cmd, &f.registry)
	addDataDirFlag(cmd, &f.dataDir, "the store and the signing keys")
	if !serving {
		return
	}
	addMCPFlag(cmd, &f.mcp)
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "`HOST:PORT` to listen on; port 0 picks one (default 127.0.0.1:8080)")
	flags.StringVar(&f.logLevel, "log-level", "", "`LEVEL` of the log: debug, info, warn or error (default info)")
	cmdline.MustSucceed(cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(
		[]cobra.Completion{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp)))
}

// configPath returns the named configuration file, or "".
func (f *configFlags) configPath() string {
	return cmp.Or(f.config, os.Getenv(config.EnvPrefix+"_CONFIG"))
}

// loadConfig reads file and environment, applies the flags and validates the result.
func (f *configFlags) loadConfig() (config.Config, error) {
	cfg, err := config.Load(f.configPath(), os.LookupEnv)
	if err != nil {
		return cfg, err
	}
	for _, o := range []struct {
		flag string
		key  *string
	}{
		{f.registry, &cfg.Registry.File},
		{f.mcp, &cfg.MCP.File},
		{f.listen, &cfg.Listen},
		{f.dataDir, &cfg.DataDir},
		{f.logLevel, &cfg.Telemetry.LogLevel},
	} {
		if o.flag != "" {
			*o.key = o.flag
		}
	}
	err = cfg.ValidateFile(f.configPath())
	return cfg, err
}

const configFlag = "config"

func addConfigFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, configFlag, "", "configuration `FILE` (default caprouter.yaml if it exists)")
	cmdline.MustSucceed(cmd.MarkFlagFilename(configFlag, cmdline.YAMLExtensions()...))
}

func addRegistryFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "registry", "", "capability registry `FILE` (default capabilities.yaml)")
	cmdline.MustSucceed(cmd.MarkFlagFilename("registry", cmdline.YAMLExtensions()...))
}

func addMCPFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "mcp", "", "registry `FILE` of MCP servers (default $MCP_REGISTRY_FILE or "+config.DefaultMCPFile+")")
	cmdline.MustSucceed(cmd.MarkFlagFilename("mcp", "json"))
}

func addDataDirFlag(cmd *cobra.Command, dir *string, content string) {
	cmd.Flags().StringVar(dir, "data-dir", "", "`DIR` with "+content+" (default caprouter-data)")
	cmdline.MustSucceed(cmd.MarkFlagDirname("data-dir"))
}

// dataDirFlags are the flags of commands that need only the data directory.
type dataDirFlags struct{ dataDir, config string }

func (f *dataDirFlags) register(cmd *cobra.Command, content string) {
	addConfigFlag(cmd, &f.config)
	addDataDirFlag(cmd, &f.dataDir, content)
}

// loadConfig does not validate the configuration, because mistakes in other keys must
// not prevent a check. With --data-dir it ignores the configuration.
func (f *dataDirFlags) loadConfig() (config.Config, error) {
	if f.dataDir != "" {
		return config.Config{DataDir: f.dataDir}, nil
	}
	flags := configFlags{config: f.config}
	return config.Load(flags.configPath(), os.LookupEnv)
}

// newDataDirCommand completes a command that has no arguments and works on a data
// directory, whose flags are those of dataDirFlags and --json. work calls printResult.
func newDataDirCommand(
	cmd *cobra.Command, content string, work func(cmd *cobra.Command, cfg config.Config, printResult resultPrinter) error,
) *cobra.Command {
	var flags dataDirFlags
	var asJSON bool
	cmd.Args = cmdline.ArgsBetween("no arguments", 0, 0)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.loadConfig()
		if err != nil {
			return err
		}
		return work(cmd, cfg, func(v any, printText func(out io.Writer) error) error {
			return cmdline.PrintOutput(cmd, asJSON, v, printText)
		})
	}
	flags.register(cmd, content)
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

// resultPrinter prints v as JSON, or else calls printText, as the flags of the command
// select.
type resultPrinter func(v any, printText func(out io.Writer) error) error

// serverFlags are the flags of commands that call a running router.
type serverFlags struct {
	url, tokenEnv string
	asJSON        bool
}

func (f *serverFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "`URL` of a running router (default $CAPROUTER_URL, else that of the configuration)")
	cmd.Flags().StringVar(&f.tokenEnv, "token-env", "", "`NAME` of the environment variable with the bearer token")
	if cmd.Flags().Lookup(configFlag) == nil {
		addConfigFlag(cmd, new(string))
	}
}

// restclient.New returns a client of the router of the flags or of the environment, or else
// of the one that the configuration describes.
func (f *serverFlags) newClient(cmd *cobra.Command) (*restclient.Client, error) {
	base := f.routerURL(cmd)
	if base == "" {
		flags := configFlags{config: cmd.Flag(configFlag).Value.String()}
		cfg, err := config.Load(flags.configPath(), os.LookupEnv)
		if err != nil {
			return nil, err
		}
		base = localURL(&cfg)
	}
	return restclient.New(base, f.tokenEnv)
}

// localURL returns the URL at which commands on the same machine reach the router with
// the configuration.
func localURL(cfg *config.Config) string {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port == "0" {
		return cmp.Or(cfg.PublicURL, restclient.DefaultURL)
	}
	scheme := "http"
	if cfg.TLS.CertFile != "" {
		if cfg.PublicURL != "" { // the certificate is for its host
			return cfg.PublicURL
		}
		scheme = "https"
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// routerURL returns the URL of the flag or of the environment, or "".
func (f *serverFlags) routerURL(cmd *cobra.Command) string {
	if cmd.Flags().Changed("url") {
		return f.url
	}
	return os.Getenv(config.EnvPrefix + "_URL")
}
