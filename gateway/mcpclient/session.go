package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/subprocess"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/run"
)

// Config is what all sessions have in common.
type Config struct {
	Supervisor []string // see subprocess.Config
	Version    string   // of this program, for the server
	Logger     *slog.Logger
	Addresses  egress.AddressPolicy // of servers that are no processes; nil = all
}

// Session is a connection to a server. Its methods may be called from any goroutine.
type Session struct {
	server  *mcpfile.Expanded
	session *mcp.ClientSession
	process *subprocess.Process // of a stdio server
	http    *httpTransport      // of other servers
	changed chan struct{}
	changes atomic.Uint64 // notifications of changed lists
	lenient atomic.Int32  // requests of lists in which invalid entries are replaced
	done    chan struct{}
	ended   error // how the session ended; set before done is closed
	group   *run.Group

	progress     progressReceivers
	subscription subscription
}

// ErrAuthRequired means that the server rejected the credential, or its absence.
var ErrAuthRequired = errors.New("the server requires a valid credential")

// ErrExpired means that the server does not know the session any more. A new one can be
// opened at once.
var ErrExpired = errors.New("the session has expired")

// Connect starts the server or connects to it, and agrees on the version of the
// protocol. The context limits this function only.
func Connect(ctx context.Context, server *mcpfile.Expanded, cfg Config) (*Session, error) {
	s := &Session{server: server, changed: make(chan struct{}, 1), done: make(chan struct{}), subscription: subscription{ended: make(chan struct{}, 1)}}
	if err := s.open(ctx, cfg); err != nil {
		text := server.Hide(err.Error())
		if s.http != nil && s.http.rejected.Load() {
			return nil, fmt.Errorf("%w: %s", ErrAuthRequired, text)
		}
		return nil, errors.New(text)
	}
	s.group = run.New(context.WithoutCancel(ctx))
	s.group.Go("MCP session", func(context.Context) error {
		defer s.group.Stop(nil)
		defer close(s.done)
		s.ended = s.session.Wait()
		return nil
	})
	if s.subscription.listen != nil {
		s.group.Go("MCP subscription", func(ctx context.Context) error {
			s.subscribeAgain(ctx)
			return nil
		})
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, cfg Config) error {
	if s.server.Transport == mcpfile.Stdio {
		return s.openProcess(ctx, cfg)
	}
	var err error
	if s.http, err = newHTTPTransport(s.server, cfg.Addresses); err != nil {
		return err
	}
	s.http.subscribed = s.setSubscribed
	s.http.observe = func(stream io.ReadCloser) io.ReadCloser { return &observedStream{ReadCloser: stream, session: s} }
	kinds := []string{s.server.Transport}
	if s.server.Transport == mcpfile.Auto {
		kinds = []string{mcpfile.HTTP, mcpfile.SSE}
	}
	client := egress.NewClient(s.http)
	var failures []error
	for _, kind := range kinds {
		transport := transportOf(kind, s.server.URL, client)
		s.http.reopened = s.reportChange
		if kind == mcpfile.SSE {
			s.http.reopened = nil
			transport = lenientTransport{transport, s}
		}
		if err = s.connect(ctx, transport, cfg); err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	s.http.CloseIdleConnections()
	return failures[0] // of the current transport
}

func (s *Session) openProcess(ctx context.Context, cfg Config) error {
	var err error
	s.process, err = subprocess.Start(subprocess.Config{
		Supervisor: cfg.Supervisor, Command: s.server.Command, Env: s.server.Env, Dir: s.server.Dir,
		Rewrite: repairLine,
	})
	if err != nil {
		return err
	}
	pipes := &mcp.IOTransport{Reader: s.process.Output, Writer: s.process.Input}
	err = s.connect(ctx, lenientTransport{observingTransport{pipes, s}, s}, cfg)
	if err == nil {
		return nil
	}
	_ = s.process.Close() // reports only that the goroutine ended
	switch {
	case ctx.Err() != nil:
		return s.withStderr("the server did not answer in time")
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, io.EOF):
		return s.withStderr(s.process.ExitError().Error())
	}
	return s.withStderr(err.Error())
}

// withStderr adds the end of the error output of the process.
func (s *Session) withStderr(text string) error {
	if last := errorLine(s.process.Stderr()); last != "" && !strings.Contains(text, last) {
		text += "; its error output ends with: " + last
	}
	return errors.New(text)
}

const maxLastLine = 300

// Node.js ends the report of an exception with its version, after a stack trace.
var (
	nodeVersion = regexp.MustCompile(`^Node\.js v\d`)
	nodeError   = regexp.MustCompile(`^\w*Error( \[\w+\])?: `)
)

// errorLine returns the last line of an error output or, if that is a report of Node.js,
// the line that contains the error.
func errorLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if nodeVersion.MatchString(last) {
		for _, line := range slices.Backward(lines) {
			if nodeError.MatchString(line) {
				last = strings.TrimSpace(line)
				break
			}
		}
	}
	return strings.ToValidUTF8(last[max(0, len(last)-maxLastLine):], "")
}

// connect opens the session over a transport of the library.
func (s *Session) connect(ctx context.Context, transport mcp.Transport, cfg Config) error {
	opts := &mcp.ClientOptions{
		Logger:       slog.New(slog.DiscardHandler), // the library logs contents
		Capabilities: &mcp.ClientCapabilities{},     // no roots
		// Without handlers, the library does not subscribe to changes. See passNotification.
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "caprouter", Version: cfg.Version}, opts)
	client.AddSendingMiddleware(LimitCaches, s.keepListen)
	var err error
	s.session, err = client.Connect(ctx, transport, nil)
	return err
}

// LimitCaches is a sending middleware for clients of servers whose results are not cached. It
// removes the time for which a server permits to cache a result: one that is requested again
// must be the current one. Nevertheless the library keeps the result of every cursor and URI
// until it is requested again, so that the middleware removes these from the parameters when
// the request has been sent. The library keeps the tools, because it uses their definitions.
func LimitCaches(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		switch result := result.(type) {
		case *mcp.ListToolsResult:
			result.TTLMs = 0
		case *mcp.ListPromptsResult:
			result.TTLMs = 0
		case *mcp.ListResourcesResult:
			result.TTLMs = 0
		case *mcp.ListResourceTemplatesResult:
			result.TTLMs = 0
		case *mcp.ReadResourceResult:
			result.TTLMs = 0
		}
		switch params := req.GetParams().(type) {
		case *mcp.ListPromptsParams:
			params.Cursor = ""
		case *mcp.ListResourcesParams:
			params.Cursor = ""
		case *mcp.ListResourceTemplatesParams:
			params.Cursor = ""
		case *mcp.ReadResourceParams:
			params.URI = ""
		}
		return result, nil
	}
}

// Changed receives a value after the server has reported a change of its lists.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// Changes returns how many changes of its lists the server has reported.
func (s *Session) Changes() uint64 { return s.changes.Load() }

// ReportsChanges reports whether the server has promised to report changes of its tools
// on this connection, and the subscription to them has not ended.
func (s *Session) ReportsChanges() bool {
	caps := s.session.InitializeResult().Capabilities
	return caps != nil && caps.Tools != nil && caps.Tools.ListChanged && !s.subscription.closed.Load()
}

// Done is closed when the connection is lost or closed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err describes why the connection was lost. It is ErrExpired if the server has ended the
// session. What the library reports is not included: it may contain results.
func (s *Session) Err() error {
	if s.process != nil {
		text := "the connection was lost"
		if exit := s.process.ExitError(); exit != nil {
			text = exit.Error()
		}
		return errors.New(s.server.Hide(s.withStderr(text).Error()))
	}
	if errors.Is(s.ended, mcp.ErrSessionMissing) {
		return ErrExpired
	}
	return errors.New("the connection was closed by the server")
}

// Protocol returns the version of the protocol.
func (s *Session) Protocol() string { return s.session.InitializeResult().ProtocolVersion }

// Close ends the session, and the process of a stdio server.
func (s *Session) Close() error {
	s.group.Stop(nil)
	if s.process != nil {
		// Its end also ends a write that a stopped server does not read.
		err := s.process.Close()
		_ = s.session.Close() // the pipes are closed
		return errors.Join(err, s.group.Wait())
	}
	_ = s.session.Close() // a server that does not answer keeps the session until it expires
	s.http.CloseIdleConnections()
	return s.group.Wait()
}

// statelessProtocol is the first version without ping.
const statelessProtocol = "2026-07-28"

// Probe reports whether the server answers. A server that rejects the request is alive.
func (s *Session) Probe(ctx context.Context) error {
	var err error
	if s.Protocol() < statelessProtocol {
		err = s.session.Ping(ctx, nil)
	} else {
		_, err = s.session.ListTools(ctx, nil)
	}
	if isReply(err) {
		return nil
	}
	return err
}

var (
	errEndlessList   = errors.New("the list of the server does not end")
	errTooManyTools  = fmt.Errorf("the server has more than %d tools", MaxTools)
	errToolsTooLarge = fmt.Errorf("the definitions of the server's tools have more than %d bytes", maxToolBytes)
)
