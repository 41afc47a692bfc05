package app

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/httptarget"
	"github.com/caprouter/caprouter/dispatch/mcptarget"
	"github.com/caprouter/caprouter/dispatch/orchestratortarget"
	"github.com/caprouter/caprouter/dispatch/pulltarget"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/router"
)

// Options are parameters that the command sets rather than the operator.
type Options struct {
	LogOutput  io.Writer    // nil = os.Stderr
	Version    string       // of this build, for the User-Agent of calls to agents
	Listener   net.Listener // already open; nil = config.Config.Listen is opened
	OwnProcess bool         // the process runs nothing else: see configureProcess
	// Supervisor is the command line of the supervisor of MCP servers that are processes,
	// without the server; nil = such servers are not started.
	Supervisor []string
	// LookupEnv finds secrets; nil = os.LookupEnv.
	LookupEnv func(string) (string, bool)
}

// core is a router that stores nothing, with its dependencies and without a listener: all
// that a command needs that routes one request. A serverCore contains one.
type core struct {
	cfg        config.Config
	log        *slog.Logger
	telemetry  *telemetry.Telemetry
	keys       *keyring.Ring
	issuer     *issuance.Issuer // of tokens
	target     *httptarget.Target
	dispatcher *dispatch.Dispatcher
	tokens     hourlyBudget // of all models together
	model      *llm.Client  // nil if none is configured
	classifier *classifier.Classifier
	router     *router.Router
	baseURL    atomic.Pointer[string] // base URL of callbacks; nil = none
}

// newCore builds a core. The keys sign the tokens of agents.
func newCore(ctx context.Context, cfg config.Config, opts Options, keys *keyring.Ring) (_ *core, err error) {
	c, redactor, err := openCore(cfg, &opts, keys, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close(ctx)
		}
	}()
	if err := c.openParts(&opts, redactor, noTools{}, noGoals{}); err != nil {
		return nil, err
	}
	if c.router, err = router.New(c.routerConfig(redactor), c.classifier, c.dispatcher); err != nil {
		return nil, err
	}
	c.telemetry.Metrics().ObserveOpen(c.router.OpenRequests)
	return c, nil
}

// openCore returns a core with its log. Only a process that serves exports traces.
func openCore(cfg config.Config, opts *Options, keys *keyring.Ring, serves bool) (*core, *redact.Redactor, error) {
	if opts.LogOutput == nil {
		opts.LogOutput = os.Stderr
	}
	redactor, err := redact.New(cfg.Redact.RedactorConfig())
	if err != nil {
		return nil, nil, err
	}
	issuer, err := issuance.New(keys, cfg.Auth.AgentTokens.Alg)
	if err != nil {
		return nil, nil, err
	}
	tel, err := newTelemetry(&cfg, opts, redactor, serves)
	if err != nil {
		return nil, nil, err
	}
	return &core{
		cfg: cfg, log: tel.Logger(), telemetry: tel, keys: keys, issuer: issuer,
		tokens: hourlyBudget{limits.NewTokenBudget(cfg.Limits.LLMTokensPerHour)},
	}, redactor, nil
}

// openParts opens what a router needs beside its storage. Tasks of agents that are tools or
// goals are passed on to tools and goals.
func (c *core) openParts(opts *Options, redactor *redact.Redactor, tools mcptarget.Invoker, goals orchestratortarget.Runner) (err error) {
	if opts.OwnProcess {
		configureProcess(&c.cfg, c.log)
	}
	if slices.Equal(c.cfg.Redact.Kinds, config.StringList{config.KindsNone}) {
		c.log.Warn("nothing is masked: a model and this log receive the texts of callers", "key", "redact.kinds")
	}
	if err := c.openDispatcher(opts.Version, tools, goals); err != nil {
		return err
	}
	if err := c.openModel(opts); err != nil {
		return err
	}
	c.classifier, err = c.newClassifier(redactor)
	return err
}

// newTelemetry opens log and metrics, and tracing in a process that serves.
func newTelemetry(c *config.Config, opts *Options, redactor *redact.Redactor, serves bool) (*telemetry.Telemetry, error) {
	cfg := telemetry.Config{LogLevel: c.Telemetry.LogLevel, Output: opts.LogOutput, Mask: redactor.RedactText}
	if serves {
		if err := c.Telemetry.CheckHeaders(c.Dispatch.AllowPlainHTTP, opts.EnvLookup()); err != nil {
			return nil, err
		}
		cfg.Tracing = telemetry.TracingConfig{Endpoint: c.Telemetry.TracesURL(), Ratio: c.Telemetry.TraceRatio, Version: opts.Version}
	}
	return telemetry.New(cfg)
}

// openDispatcher opens the dispatcher with a target for each protocol of agents.
func (c *core) openDispatcher(version string, tools mcptarget.Invoker, goals orchestratortarget.Runner) error {
	private, err := c.cfg.Dispatch.PrivatePrefixes()
	if err != nil {
		return err
	}
	c.target, err = httptarget.New(httptarget.Config{
		Issuer:         c.cfg.Auth.Issuer,
		TokenReuse:     time.Duration(c.cfg.Dispatch.TokenReuseS) * time.Second,
		AllowPlainHTTP: c.cfg.Dispatch.AllowPlainHTTP,
		Version:        version,
		PublicURL:      c.publicURL,
		Guard:          egress.NewGuard(append(private, c.cfg.LocalAddresses()...)...),
		Logger:         c.log,
	}, c.issuer)
	if err != nil {
		return err
	}
	toolTarget, err := mcptarget.New(tools, c.log)
	if err != nil {
		return err
	}
	goalTarget, err := orchestratortarget.New(goals, c.log)
	if err != nil {
		return err
	}
	c.dispatcher, err = dispatch.New(dispatch.Config{MaxInFlight: c.cfg.Dispatch.MaxInFlight, Logger: c.log},
		map[string]dispatch.Target{
			contract.ProtocolHTTP: c.target, contract.ProtocolPull: pulltarget.Target{}, contract.ProtocolMCP: toolTarget, contract.ProtocolOrchestrator: goalTarget,
		})
	if err != nil {
		return err
	}
	c.telemetry.Metrics().ObserveBreakers(c.dispatcher.OpenBreakers)
	return nil
}

// answersByDefault reports whether requests without an agent are answered directly if the
// registry leaves the choice.
func (c *core) answersByDefault() bool {
	mode, _ := c.classifier.Mode()
	return mode != classifier.ModeLexical
}

// routerConfig returns the configuration of a router that stores nothing.
func (c *core) routerConfig(redactor *redact.Redactor) router.Config {
	cfg := router.Config{
		Timeout:         c.cfg.Dispatch.Timeout(),
		Redactor:        redactor,
		SessionTrigger:  c.cfg.Session.ClassifyTrigger,
		AnswerByDefault: c.answersByDefault(),
		Logger:          c.log,
		Metrics:         c.telemetry.Metrics(),
		Tracer:          c.telemetry.Tracer(),
	}
	if cfg.SummarizeResults = c.cfg.Dispatch.Aggregate == config.AggregateSummary; cfg.SummarizeResults && c.model == nil {
		c.log.Warn("the results of several agents are not summarized: dispatch.aggregate is llm_summary, but no model is configured")
	}
	if c.model != nil {
		cfg.Model = telemetry.TracedModel{Client: c.model}
	}
	if l := newCallerLimit("fallback_answer", c.cfg.AnswerRate()); l != nil {
		cfg.Answers = l
	}
	return cfg
}

// publicURL returns the base URL of callbacks, "" if the router does not listen.
func (c *core) publicURL() string {
	if u := c.baseURL.Load(); u != nil {
		return *u
	}
	return ""
}

// close releases all resources of the core, which may be partly built, and ends calls to
// agents and to the model.
func (c *core) close(ctx context.Context) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if c.router != nil {
		c.router.Close(closing)
	}
	c.closeClients()
	c.closeTelemetry(ctx)
}

// closeClients ends calls to agents and to the model.
func (c *core) closeClients() {
	if c.classifier != nil {
		c.classifier.Close()
	}
	if c.model != nil {
		_ = c.model.Close() // the error concerns idle connections
	}
	if c.target != nil {
		c.target.Close()
	}
}

func (c *core) closeTelemetry(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	c.telemetry.Close(ctx)
}

// closeTimeout bounds the graceful shutdown of asynchronous requests.
const closeTimeout = 8 * time.Second

// flushTimeout bounds the export of the last spans.
const flushTimeout = 2 * time.Second
