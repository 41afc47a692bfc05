package mcpfile

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/caprouter/caprouter/gateway/redaction"
)

// Transports of a server.
const (
	Stdio = "stdio" // a process of this machine
	HTTP  = "http"  // MCP over streamable HTTP
	SSE   = "sse"   // MCP over HTTP with server-sent events, the older transport
	Auto  = "auto"  // HTTP or else SSE
	REST  = "rest"  // one POST per call, without MCP
)

// Server is one MCP server as its file declares it. Its JSON is an element of the
// format servers. Values may contain ${NAME}; see [Server.Expand]. It is immutable.
type Server struct {
	ID        string            `json:"id"`
	Transport string            `json:"transport"`
	Command   []string          `json:"command,omitempty"` // program and arguments
	Env       map[string]string `json:"env,omitempty"`
	Dir       string            `json:"cwd,omitempty"`
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Auth      *Auth             `json:"auth,omitempty"`

	Disabled  bool       `json:"disabled,omitzero"`
	Start     string     `json:"start,omitempty"`   // "" = eager, or Lazy
	Priority  int        `json:"priority,omitzero"` // the highest is preferred for a capability
	Timeouts  Timeouts   `json:"timeouts,omitzero"`
	Retry     *Retry     `json:"retry,omitempty"`
	Breaker   Breaker    `json:"breaker,omitzero"`
	Health    Health     `json:"health,omitzero"`
	RateLimit *RateLimit `json:"rate_limit,omitempty"` // of each caller and tool

	Capabilities []string   `json:"capabilities,omitempty"` // for example incident:read
	Actions      []Action   `json:"actions,omitempty"`      // if there are any, no other tools can be called
	Tools        ToolFilter `json:"tools,omitzero"`
	// Prompts and Resources declare whether those of the server are passed on to MCP clients.
	// Nil = they are, unless Actions or Tools restrict its tools.
	Prompts   *bool `json:"prompts,omitempty"`
	Resources *bool `json:"resources,omitempty"`

	Redaction []redaction.Rule `json:"redaction,omitempty"`

	Line int `json:"-"` // in the file
}

// PassesPrompts reports whether the prompts of the server are passed on.
func (s *Server) PassesPrompts() bool { return s.passes(s.Prompts) }

// PassesResources reports whether the resources of the server are passed on.
func (s *Server) PassesResources() bool { return s.passes(s.Resources) }

func (s *Server) passes(declared *bool) bool {
	if declared != nil {
		return *declared
	}
	return len(s.Actions) == 0 && len(s.Tools.Include) == 0 && len(s.Tools.Exclude) == 0
}

// Auth is a credential in a header of each request.
type Auth struct {
	Type   string `json:"type"`             // "bearer" or "header"
	Header string `json:"header,omitempty"` // name of the header of type "header"
	Env    string `json:"env"`              // name of the environment variable with the credential
}

// Timeouts are in milliseconds; 0 is the default.
type Timeouts struct {
	Connect int `json:"connect,omitzero"`
	Call    int `json:"call,omitzero"`
	Probe   int `json:"probe,omitzero"`
}

// Retry specifies how often a failed call is repeated. Its presence means that the
// operator allows to repeat calls that may have been executed, unless Idempotent is
// false.
type Retry struct {
	Retries    int    `json:"retries"`
	Backoff    string `json:"backoff,omitempty"` // "exponential" (default) or "fixed"
	MinMS      int    `json:"min_ms,omitzero"`
	MaxMS      int    `json:"max_ms,omitzero"`
	Idempotent *bool  `json:"idempotent,omitempty"`
}

// Lazy is the Start of a server that is connected when it is first needed.
const Lazy = "lazy"

// Breaker specifies when a server that fails gets no calls for a time.
type Breaker struct {
	Failures int `json:"failures,omitzero"` // consecutive; 0 = the default
	OpenMS   int `json:"open_ms,omitzero"`  // 0 = the default
}

// Health specifies how often a server is probed.
type Health struct {
	IntervalMS int `json:"interval_ms,omitzero"` // 0 = the default
}

// RateLimit bounds the calls of one caller to one tool.
type RateLimit struct {
	RPS   float64 `json:"rps"`
	Burst int     `json:"burst,omitzero"` // 0 = 1
}

// Action is a tool that the file declares. Its schemas take precedence over those of
// the server.
type Action struct {
	Name         string          `json:"name"` // of the tool, without the id of the server
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	TimeoutMS    int             `json:"timeout_ms,omitzero"`
	Retry        *Retry          `json:"retry,omitempty"`
	RateLimit    *RateLimit      `json:"rate_limit,omitempty"`
}

// ToolFilter selects tools of a server by name. A pattern may end with "*".
type ToolFilter struct {
	Include []string `json:"include,omitempty"` // empty = all
	Exclude []string `json:"exclude,omitempty"`
	// Prefix begins the names of the tools for MCP clients of caprouter. Nil = the id of
	// the server and two underscores.
	Prefix *string `json:"prefix,omitempty"`
}

// File is a registry file.
type File struct {
	Name     string
	Format   string   // "plugins", "servers", "map", "mcpServers" or "vscode"
	Servers  []Server // ordered by id
	Warnings []string // each with its position
}

// Public is the part of a declaration that can be shown: no arguments, values or credentials.
type Public struct {
	Type    string `json:"type"`              // "local" or "remote"
	Program string `json:"program,omitempty"` // of a local server
	URL     string `json:"url,omitempty"`     // of a remote server, without credentials and query
	Enabled bool   `json:"enabled"`
	Timeout int    `json:"timeout,omitzero"` // of a call, in milliseconds
}

// Public returns the part of the declaration that can be shown.
func (s *Server) Public() Public {
	p := Public{Type: "remote", Enabled: !s.Disabled, Timeout: s.Timeouts.Call}
	if s.Transport == Stdio {
		p.Type = "local"
		if len(s.Command) > 0 {
			p.Program = s.Command[0]
		}
		return p
	}
	text, _, _ := strings.Cut(s.URL, "?")
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		u.User, u.Fragment = nil, ""
		p.URL = u.Scheme + "://" + u.Host + u.EscapedPath()
	}
	return p
}
