package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/capabilities"
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
	"github.com/caprouter/caprouter/internal/fleet"
	"github.com/caprouter/caprouter/internal/limits"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/orchestrations"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/registry"
	"github.com/caprouter/caprouter/internal/run"
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

// core is the router with all of its dependencies, without a listener.
type core struct {
	cfg         config.Config
	log         *slog.Logger
	telemetry   *telemetry.Telemetry
	keys        *keyring.Ring
	issuer      *issuance.Issuer // of tokens
	target      *httptarget.Target
	dispatcher  *dispatch.Dispatcher
	tokens      hourlyBudget // of all models together
	model       *llm.Client  // nil if none is configured
	classifier  *classifier.Classifier
	router      *router.Router
	file        *registry.File          // of a core that serves
	fleet       *fleet.Fleet            // likewise
	registry    *registry.Registry      // likewise
	views       *viewBuilder            // likewise
	access      *accessControl          // of a core that serves
	mcp         *mcphost.Host           // likewise
	runs        *orchestrations.Service // likewise
	agentCheck  *agentCheck             // likewise
	persistence *persistence            // nil in a core that routes one request
	baseURL     atomic.Pointer[string]  // base URL of callbacks; nil = none
}

// storeUse is how a core uses the data directory.
type storeUse int

const (
	noStore   storeUse = iota // it routes one request and stores nothing
	newStore                  // nothing is stored yet
	usedStore                 // an earlier process has used it, so it must contain an audit log
)

// newCore builds the core. The keys sign the tokens of agents. Only one process can open
// the store at a time.
func newCore(ctx context.Context, cfg config.Config, opts Options, keys *keyring.Ring, use storeUse) (_ *core, err error) {
	if opts.LogOutput == nil {
		opts.LogOutput = os.Stderr
	}
	redactor, err := redact.New(cfg.Redact.RedactorConfig())
	if err != nil {
		return nil, err
	}
	issuer, err := issuance.New(keys, cfg.Auth.AgentTokens.Alg)
	if err != nil {
		return nil, err
	}
	tel, err := newTelemetry(&cfg, &opts, redactor, use)
	if err != nil {
		return nil, err
	}
	c := &core{
		cfg: cfg, log: tel.Logger(), telemetry: tel, keys: keys, issuer: issuer,
		tokens: hourlyBudget{limits.NewTokenBudget(cfg.Limits.LLMTokensPerHour)},
	}
	defer func() {
		if err != nil {
			_ = c.closeResources(ctx) // the first error is returned
		}
	}()
	if opts.OwnProcess {
		configureProcess(&cfg, c.log)
	}
	if slices.Equal(cfg.Redact.Kinds, config.StringList{config.KindsNone}) {
		c.log.Warn("nothing is masked: a model and this log receive the texts of callers", "key", "redact.kinds")
	}
	if err := c.openDispatcher(opts.Version); err != nil {
		return nil, err
	}
	if err := c.openModel(&opts); err != nil {
		return nil, err
	}
	if c.classifier, err = c.newClassifier(redactor); err != nil {
		return nil, err
	}
	if use != noStore {
		if err := c.openFiles(ctx, &opts, redactor, use); err != nil {
			return nil, err
		}
	}
	if c.router, err = c.newRouter(redactor); err != nil {
		return nil, err
	}
	if use != noStore {
		if c.mcp, err = c.openMCP(ctx, &opts, redactor); err != nil {
			return nil, err
		}
		c.agentCheck = newAgentCheck(c)
		if c.runs, err = openRuns(ctx, c, &opts, redactor); err != nil {
			return nil, err
		}
	}
	tel.Metrics().ObserveOpen(c.router.OpenRequests)
	return c, nil
}

// newTelemetry opens log, metrics and tracing. Only a process that serves exports traces.
func newTelemetry(c *config.Config, opts *Options, redactor *redact.Redactor, use storeUse) (*telemetry.Telemetry, error) {
	cfg := telemetry.Config{LogLevel: c.Telemetry.LogLevel, Output: opts.LogOutput, Mask: redactor.RedactText}
	if use != noStore {
		if err := c.Telemetry.CheckHeaders(c.Dispatch.AllowPlainHTTP, opts.EnvLookup()); err != nil {
			return nil, err
		}
		cfg.Tracing = telemetry.TracingConfig{Endpoint: c.Telemetry.TracesURL(), Ratio: c.Telemetry.TraceRatio, Version: opts.Version}
	}
	return telemetry.New(cfg)
}

// openDispatcher opens the dispatcher with a target for each protocol of agents.
func (c *core) openDispatcher(version string) error {
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
	tools, err := mcptarget.New(taskInvoker{c}, c.log)
	if err != nil {
		return err
	}
	goals, err := orchestratortarget.New(goalRunner{c}, c.log)
	if err != nil {
		return err
	}
	c.dispatcher, err = dispatch.New(dispatch.Config{MaxInFlight: c.cfg.Dispatch.MaxInFlight, Logger: c.log},
		map[string]dispatch.Target{
			contract.ProtocolHTTP: c.target, contract.ProtocolPull: pulltarget.Target{}, contract.ProtocolMCP: tools, contract.ProtocolOrchestrator: goals,
		})
	if err != nil {
		return err
	}
	c.telemetry.Metrics().ObserveBreakers(c.dispatcher.OpenBreakers)
	return nil
}

// openFiles opens what a core that serves reads from files: keys and certificate, store
// and registry.
func (c *core) openFiles(ctx context.Context, opts *Options, redactor *redact.Redactor, use storeUse) (err error) {
	if c.access, err = c.openAccess(opts); err != nil {
		return err
	}
	var errs [2]error // at the same time: the store waits for the disk
	run.ForEach(ctx, len(errs), len(errs), func(ctx context.Context, i int) {
		if i == 0 {
			errs[i] = c.openPersistence(ctx, opts, use, redactor)
		} else {
			c.file, errs[i] = openRegistryFile(&c.cfg.Registry, c.log)
		}
	})
	return cmp.Or(errs[0], errs[1])
}

// answersByDefault reports whether requests without an agent are answered directly if the
// registry leaves the choice.
func (c *core) answersByDefault() bool {
	mode, _ := c.classifier.Mode()
	return mode != classifier.ModeLexical
}

func (c *core) newRouter(redactor *redact.Redactor) (*router.Router, error) {
	cfg := router.Config{
		Timeout:         c.cfg.Dispatch.Timeout(),
		Redactor:        redactor,
		SessionTrigger:  c.cfg.Session.ClassifyTrigger,
		Storage:         c.persistence.routerStorage(c.cfg.Audit),
		AnswerByDefault: c.answersByDefault(),
		Logger:          c.log,
		Metrics:         c.telemetry.Metrics(),
		Tracer:          c.telemetry.Tracer(),
	}
	if c.persistence != nil {
		cfg.Storage.Runs = requestRuns{c} // which are opened after the router
	}
	if cfg.SummarizeResults = c.cfg.Dispatch.Aggregate == config.AggregateSummary; cfg.SummarizeResults && c.model == nil {
		c.log.Warn("the results of several agents are not summarized: dispatch.aggregate is llm_summary, but no model is configured")
	}
	if c.model != nil {
		cfg.Model = telemetry.TracedModel{Client: c.model}
	}
	if c.access != nil && c.access.verifier != nil && c.cfg.Auth.StopOnRevoke {
		cfg.IsRevoked = c.access.verifier.IsKeyRevoked
	}
	if l := newCallerLimit("fallback_answer", c.cfg.AnswerRate()); l != nil {
		cfg.Answers = l
	}
	return router.New(cfg, c.classifier, c.dispatcher)
}

// snapshot returns the version of the registry that routes, or the one that a View
// is being built of.
func (c *core) snapshot() *capabilities.Snapshot {
	if v := c.router.View(); v != nil {
		return v.Snapshot()
	}
	return c.registry.Current()
}

// publicURL returns the base URL of callbacks, "" if the router does not listen.
func (c *core) publicURL() string {
	if u := c.baseURL.Load(); u != nil {
		return *u
	}
	return ""
}

// closeResources releases all resources of the core, which may be partly built, and ends calls
// to agents and to the model.
func (c *core) closeResources(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if c.router != nil {
		c.router.Close(ctx)
	}
	var err error
	if c.runs != nil {
		c.runs.Close(ctx)
	}
	if c.mcp != nil { // after the router, whose tasks may call tools
		err = c.mcp.Close()
	}
	if c.classifier != nil {
		c.classifier.Close()
	}
	if c.model != nil {
		_ = c.model.Close() // the error concerns idle connections
	}
	if c.target != nil {
		c.target.Close()
	}
	err = errors.Join(err, c.persistence.closeStore(ctx))
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	c.telemetry.Close(ctx)
	return err
}

// closeTimeout bounds the graceful shutdown of asynchronous requests.
const closeTimeout = 8 * time.Second

// flushTimeout bounds the export of the last spans.
const flushTimeout = 2 * time.Second
