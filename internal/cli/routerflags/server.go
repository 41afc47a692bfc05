package routerflags

import (
	"cmp"
	"net"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/config"
)

// Server are the flags of commands that call a running router.
type Server struct {
	URL, TokenEnv string
	AsJSON        bool // print JSON, if the command has the flag
}

// Register adds the flags, and --config if the command does not have it. --json is added by
// commands that print JSON.
func (f *Server) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.URL, "url", "", "`URL` of a running router (default $CAPROUTER_URL, else that of the configuration)")
	cmd.Flags().StringVar(&f.TokenEnv, "token-env", "", "`NAME` of the environment variable with the bearer token")
	if cmd.Flags().Lookup(configFlag) == nil {
		AddConfigFlag(cmd, new(string))
	}
}

// NewClient returns a client of the router of the flags or of the environment, or else
// of the one that the configuration describes.
func (f *Server) NewClient(cmd *cobra.Command) (*restclient.Client, error) {
	base := f.RouterURL(cmd)
	if base == "" {
		flags := Config{ConfigFile: cmd.Flag(configFlag).Value.String()}
		cfg, err := config.Load(flags.ConfigPath(), os.LookupEnv)
		if err != nil {
			return nil, err
		}
		base = LocalURL(&cfg)
	}
	return restclient.New(base, f.TokenEnv)
}

// LocalURL returns the URL at which commands on the same machine reach the router with
// the configuration.
func LocalURL(cfg *config.Config) string {
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

// RouterURL returns the URL of the flag or of the environment, or "".
func (f *Server) RouterURL(cmd *cobra.Command) string {
	if cmd.Flags().Changed("url") {
		return f.URL
	}
	return os.Getenv(config.EnvPrefix + "_URL")
}
