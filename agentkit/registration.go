package agentkit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// DefaultDrainTimeout is the default of Config.DrainTimeout.
const DefaultDrainTimeout = 30 * time.Second

// registration is the part of the configuration that concerns the registration.
type registration struct {
	routerURL    string // without a slash at its end; "" = the agent does not register itself
	token        TokenSource
	declared     contract.Registration
	drainTimeout time.Duration
}

// newRegistration checks the configuration and adds the defaults.
func newRegistration(cfg Config) (registration, error) {
	r := registration{
		routerURL: strings.TrimRight(cfg.RouterURL, "/"), token: cfg.Token,
		declared: cfg.Registration, drainTimeout: cfg.DrainTimeout,
	}
	router, err := url.Parse(cfg.RouterURL)
	switch {
	case cfg.RouterURL == "":
	case err != nil || !isHTTP(router) || router.User != nil || router.RawQuery != "" || router.Fragment != "":
		return r, errors.New("agentkit: RouterURL must be http(s)://host[:port][/path]") // without the text, which may contain a password
	}
	if r.declared.Instance == "" {
		r.declared.Instance = newInstanceName()
	}
	switch {
	case !contract.ValidAgentID(r.declared.Instance):
		return r, fmt.Errorf("agentkit: Registration.Instance %q must match %s", r.declared.Instance, contract.AgentIDPattern)
	case cfg.DrainTimeout < 0:
		return r, errors.New("agentkit: DrainTimeout must not be negative")
	case cfg.DrainTimeout == 0:
		r.drainTimeout = DefaultDrainTimeout
	}
	if r.token == nil {
		r.token = anonymous
	}
	if r.declared.Endpoint.Protocol == "" {
		r.declared.Endpoint.Protocol = contract.ProtocolHTTP
	}
	return r, nil
}

// pulls reports whether the agent pulls its tasks.
func (a *Agent) pulls() bool {
	return a.registration.declared.Endpoint.Protocol == contract.ProtocolPull
}

func isHTTP(u *url.URL) bool { return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") }

// newInstanceName returns the host's name with a random suffix, because containers
// may have equal host names and process ids.
func newInstanceName() string {
	host, _ := os.Hostname() // the suffix suffices
	return instanceName(host, strings.ToLower(rand.Text()[:8]))
}

// instanceName returns a name that matches contract.AgentIDPattern. The suffix is 8
// letters and digits.
func instanceName(host, suffix string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, host)
	if host == "" || host[0] < 'a' || host[0] > 'z' {
		host = "host-" + host
	}
	return host[:min(len(host), 48)] + "-" + suffix
}
