package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/gateway/pins"
)

// DefaultMCPFile is the registry file of MCP servers, which may be absent.
const DefaultMCPFile = "mcp.json"

// MCP specifies the MCP servers and how their tools are called.
type MCP struct {
	File             string `yaml:"file"` // "" = DefaultMCPFile, which may be absent
	HotReload        bool   `yaml:"hot_reload"`
	DefaultTimeoutMS int    `yaml:"default_timeout_ms" validate:"range=1 600000"` // of an attempt to call a tool
	CircuitBreaker   bool   `yaml:"circuit_breaker"`
	Pins             string `yaml:"pins" validate:"oneof=first_use approve off"` // whether changed definitions of tools need an approval: see package pins
}

func defaultMCPConfig() MCP {
	return MCP{HotReload: true, DefaultTimeoutMS: 30_000, CircuitBreaker: true, Pins: pins.FirstUse}
}

// FilePath returns the path of the registry file of MCP servers, and whether it may be
// absent.
func (c *MCP) FilePath() (path string, optional bool) {
	if c.File == "" {
		return DefaultMCPFile, true
	}
	return strings.TrimPrefix(c.File, "classpath:"), false
}

// Timeout returns DefaultTimeoutMS as a duration.
func (c *MCP) Timeout() time.Duration {
	return time.Duration(c.DefaultTimeoutMS) * time.Millisecond
}

// applyMCPEnv sets the keys whose variables other programs use as well. CAPROUTER_MCP_*
// has precedence.
func applyMCPEnv(c *MCP, lookup func(string) (string, bool)) error {
	if lookup == nil {
		return nil
	}
	if file, ok := lookup("MCP_REGISTRY_FILE"); ok {
		c.File = strings.TrimPrefix(file, "classpath:")
	}
	for name, key := range map[string]*bool{"MCP_REGISTRY_HOT_RELOAD": &c.HotReload, "MCP_CIRCUIT_BREAKER_ENABLED": &c.CircuitBreaker} {
		text, ok := lookup(name)
		if !ok {
			continue
		}
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("environment %s: %q is not true or false", name, text)
		}
		*key = value
	}
	if text, ok := lookup("MCP_DEFAULT_TIMEOUT_MS"); ok {
		ms, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("environment MCP_DEFAULT_TIMEOUT_MS: %q is not a whole number", text)
		}
		c.DefaultTimeoutMS = ms
	}
	return nil
}
