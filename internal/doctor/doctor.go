// Package doctor checks all that a router needs before it is started: configuration,
// registry, data directory, certificate, address and model.
//
//	doctor.Run(ctx, cfg, app.Options{}, func(f doctor.Finding) { fmt.Println(f.Check, f.Level, f.Detail) })
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/egress"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/tickets"
)

// The levels of a Finding.
const (
	LevelOK   = "ok"
	LevelWarn = "warn" // works, but perhaps not as expected
	LevelFail = "fail" // serve would not start, or the model cannot be used
	LevelSkip = "skip" // not checked, because a precondition is missing
)

// Finding is the result of one check of Run.
type Finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // suggested action; "" = none
}

// Results of a check; Run adds its name.

func checkPassed(detail string) Finding { return Finding{Level: LevelOK, Detail: detail} }

func checkWarned(detail, fix string) Finding {
	return Finding{Level: LevelWarn, Detail: detail, Fix: fix}
}

func checkFailed(detail, fix string) Finding {
	return Finding{Level: LevelFail, Detail: detail, Fix: fix}
}

func checkSkipped(detail string) Finding { return Finding{Level: LevelSkip, Detail: detail} }

// diagnosis is the input of the checks.
type diagnosis struct {
	config.Config
	opts *app.Options
	key  llm.Secret // of the model
}

// Run checks all that a router needs, in the order of the start, and reports each
// finding at once. It writes and removes a probe file in the data directory or its
// parent, and changes nothing else. It asks the server of the model whether it accepts
// the key and has the model, without generating text. If ctx is cancelled, the remaining
// checks are left out.
func Run(ctx context.Context, cfg config.Config, opts app.Options, report func(Finding)) {
	if err := cfg.Validate(); err != nil {
		report(Finding{"configuration", LevelFail, err.Error(), "correct the key that it names"})
		return
	}
	d := &diagnosis{Config: cfg, opts: &opts, key: cfg.LLM.APIKey(opts.EnvLookup())}
	for _, c := range []struct {
		name  string
		check func(context.Context) Finding
	}{
		{"configuration", d.checkVariables},
		{"registry", d.checkRegistry},
		{"mcp", d.checkMCP},
		{"planner", d.checkPlanner},
		{"data directory", d.checkDataDir},
		{"store", d.checkStore},
		{"tickets", d.checkWebhook},
		{"callers", d.checkCallers},
		{"tls", d.checkTLS},
		{"listen", d.checkListener},
		{"masking", d.checkMasking},
		{"tracing", d.checkTracing},
		{"classifier", d.checkClassifier},
		{"cascade", d.checkCascade},
		{"model", d.checkModel},
	} {
		f := c.check(ctx)
		if errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		f.Check = c.name
		if f.Level != "" {
			report(f)
		}
	}
}

// checkVariables reports variables of this process that look like keys of the configuration,
// which is valid.
func (d *diagnosis) checkVariables(context.Context) Finding {
	const detail = "every key is known and in range"
	if d.opts.LookupEnv != nil {
		return checkPassed(detail)
	}
	unknown := config.UnknownEnvNames(&d.Config, os.Environ())
	if len(unknown) == 0 {
		return checkPassed(detail)
	}
	problems := make([]string, len(unknown))
	for i, name := range unknown {
		problems[i] = name + " is no key and has no effect"
		if near := config.NearestEnvName(name); near != "" {
			problems[i] += " (did you mean " + near + "?)"
		}
	}
	return checkWarned(detail+"; "+strings.Join(problems, "; "), "correct the names, or unset the variables")
}

func (d *diagnosis) checkRegistry(ctx context.Context) Finding {
	path, optional := d.Registry.FilePath()
	s, err := capabilities.Load(path)
	switch {
	case err != nil && optional && errors.Is(err, fs.ErrNotExist):
		return checkWarned("there is no "+path+" yet: every request would be unsupported", "run caprouter init, or name a file with --registry")
	case err != nil:
		return checkFailed(err.Error(), "correct it; caprouter validate "+path+" shows every mistake")
	}
	detail := fmt.Sprintf("%s: %s, %s, %s", path, plaintext.CountNoun(len(s.Catalogue.Agents), "agent"),
		plaintext.CountNoun(len(s.Catalogue.Intents), "intent"), plaintext.CountNoun(len(s.Catalogue.Domains), "domain"))
	report, err := lint.Check(ctx, s, lint.Config{NoModel: !d.LLM.IsUsable(d.key)})
	if err != nil {
		return checkWarned(fmt.Sprintf("%s; its examples cannot be routed: %v", detail, err), "caprouter lint "+path+" has more time")
	}
	detail += "; " + report.Learning.String()
	if slices.ContainsFunc(report.Findings, func(f capabilities.Finding) bool { return f.Rule == lint.RuleUnansweredFallback }) {
		return checkWarned(detail+"; fallback policy A has no model", "configure a model, or set fallback.policy to B or C in "+path)
	}
	if n := len(report.Findings); n > 0 {
		return checkWarned(fmt.Sprintf("%s; lint has %s", detail, plaintext.CountNoun(n, "finding")), "caprouter lint "+path+" explains them")
	}
	return checkPassed(detail)
}

// checkStore reports the kind of the store and which writes it can lose. It does not
// open the store, because only one process can.
func (d *diagnosis) checkStore(context.Context) Finding {
	f := checkPassed("embedded; every write is synced to disk before it is acknowledged")
	switch {
	case d.Store.URL != "":
		f = checkWarned("on an external server: whether it forces writes to disk cannot be checked",
			"set sync_interval: always in the jetstream section of its configuration")
	case d.Store.SyncInterval() > 0:
		f = checkWarned(fmt.Sprintf("embedded; a power cut may lose the last %s (store.sync)", d.Store.Sync), "store.sync: always loses nothing")
	}
	if !d.Audit.Required {
		f.Level = LevelWarn
		f.Detail += "; requests are dispatched even if they cannot be recorded (audit.required)"
		if f.Fix == "" {
			f.Fix = "audit.required: true rejects them"
		}
	}
	if d.Store.URL == "" {
		dir := d.DataDir
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			dir = nearestParent(dir)
		}
		if err := store.CheckFreeSpace(dir); err != nil {
			return checkFailed(fmt.Sprintf("%s: %s", d.DataDir, err), "free space, or name another data_dir")
		}
	}
	return f
}

// checkWebhook checks that ticket notifications can be signed, without which serve
// does not start.
func (d *diagnosis) checkWebhook(context.Context) Finding {
	hook := &d.Tickets.Webhook
	if hook.URL == "" {
		return checkPassed("stored, without notifications")
	}
	secret, _ := d.opts.EnvLookup()(hook.SecretEnv)
	if secret == "" {
		return checkFailed(fmt.Sprintf("the variable %s, which tickets.webhook.secret_env names, is not set", hook.SecretEnv),
			fmt.Sprintf("export %s=…; openssl rand -base64 32 makes one", hook.SecretEnv))
	}
	webhook := &tickets.Webhook{URL: hook.URL, Secret: llm.NewSecret(secret)}
	if err := webhook.Check(d.Dispatch.AllowPlainHTTP); err != nil {
		return checkFailed(err.Error(), "correct tickets.webhook; openssl rand -base64 32 makes a secret")
	}
	u, err := url.Parse(hook.URL)
	if err != nil {
		return checkPassed("signed notifications")
	}
	return checkPassed("signed notifications to " + u.Host)
}

// checkCallers reports how callers are authenticated, and checks the configured keys.
// It does not contact identity providers.
func (d *diagnosis) checkCallers(context.Context) Finding {
	if d.Auth.Mode == config.AuthNone {
		const detail = "auth.mode is none: every process of this machine has all rights"
		ids := d.findAgentsOfTenants()
		if len(ids) == 0 {
			return checkPassed(detail)
		}
		agents := ids[0] + " is"
		if n := len(ids) - 1; n > 0 {
			agents = fmt.Sprintf("%s and %d more are", ids[0], n)
		}
		return checkWarned(detail+"; "+agents+" for named tenants, and the local caller has none", "set auth.mode to jwt, or remove requires.tenants")
	}
	keys, err := d.Auth.StaticKeys(d.opts.EnvLookup())
	var own *keyring.Ring
	if err == nil {
		own, err = keyring.New() // any key, because no token is verified
	}
	if err == nil {
		_, err = auth.NewVerifier(auth.VerifierConfig{Audience: d.Auth.Audience, Issuer: d.Auth.Issuer, Keys: keys, Own: own})
	}
	if err != nil {
		return checkFailed(err.Error(), "correct the key that it names; docs/security.md lists the requirements")
	}
	return checkPassed(fmt.Sprintf("tokens of %s and %s, and of caprouter token", plaintext.CountNoun(len(keys), "key"), plaintext.CountNoun(len(d.Auth.Issuers), "issuer")))
}

// findAgentsOfTenants returns the ids of the agents that only callers with a tenant can
// use. A registry that cannot be loaded is another check.
func (d *diagnosis) findAgentsOfTenants() (ids []string) {
	registry, _ := d.Registry.FilePath()
	snapshot, err := capabilities.Load(registry)
	if err != nil {
		return nil
	}
	for _, a := range snapshot.Catalogue.Agents {
		if len(a.Requires.Tenants) > 0 {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func (d *diagnosis) checkTLS(context.Context) Finding {
	host, _, _ := net.SplitHostPort(d.Listen)
	switch err := app.CheckTLS(d.TLS); {
	case err != nil:
		return checkFailed(err.Error(), "correct the file that it names")
	case d.TLS.Enabled():
		return checkPassed(d.TLS.CertFile + " and its key fit")
	case egress.IsLoopback(host):
		return checkPassed("plain http, on this machine only")
	}
	return checkWarned("plain http: tokens of callers travel in clear text", "set tls, or put a proxy with TLS in front")
}

func (d *diagnosis) checkListener(ctx context.Context) Finding {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", d.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return checkWarned(d.Listen+" is in use", "correct if caprouter is running there; else choose another --listen")
	}
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return checkFailed(err.Error(), "choose another --listen")
	}
	return checkPassed(d.Listen + " is free")
}

func (d *diagnosis) checkMasking(context.Context) Finding {
	kinds := d.Redact.Kinds
	if slices.Equal(kinds, config.StringList{config.KindsDefault}) {
		return checkPassed("all kinds are masked in what a model and the log receive")
	}
	detail := fmt.Sprintf("only %s are masked, of %s", strings.Join(kinds, ", "), strings.Join(redact.Kinds(), ", "))
	if slices.Equal(kinds, config.StringList{config.KindsNone}) {
		detail = "nothing is masked: a model and the log receive the texts of callers"
	}
	return checkWarned(detail, "redact.kinds: default masks all kinds")
}

// maxTracingDial bounds the connection to the receiver of spans.
const maxTracingDial = 2 * time.Second

// checkTracing connects to the receiver of spans, if there is one, and sends nothing.
func (d *diagnosis) checkTracing(ctx context.Context) Finding {
	c := &d.Telemetry
	if c.OTLPEndpoint == "" {
		return Finding{}
	}
	if err := c.CheckHeaders(d.Dispatch.AllowPlainHTTP, d.opts.EnvLookup()); err != nil {
		return checkFailed(err.Error(), "use https for telemetry.otlp_endpoint")
	}
	target := c.TracesURL()
	u, err := url.Parse(target)
	if err != nil {
		return checkFailed(err.Error(), "correct telemetry.otlp_endpoint")
	}
	ctx, cancel := context.WithTimeout(ctx, maxTracingDial)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])))
	if err != nil {
		return checkWarned(fmt.Sprintf("spans for %s would be dropped: %v", target, err), "start the receiver, or correct telemetry.otlp_endpoint")
	}
	_ = conn.Close()
	return checkPassed(fmt.Sprintf("%g %% of the traces that begin here go to %s", 100*c.TraceRatio, target))
}

// checkClassifier reports how requests would be classified, and why.
func (d *diagnosis) checkClassifier(context.Context) Finding {
	mode, variable := d.Classifier.Mode, d.LLM.KeyEnv()
	needsModel := mode == classifier.ModeLLM || mode == classifier.ModeCascade
	switch {
	case mode == classifier.ModeLexical:
		return checkPassed("lexical, set by classifier.mode")
	case d.LLM.IsUsable(d.key) && mode == classifier.ModeAuto:
		return checkPassed("llm, because a model is configured; lexical if it does not reply")
	case d.LLM.IsUsable(d.key):
		return checkPassed(mode + ", set by classifier.mode")
	}
	missing, fix := "llm names neither a key nor a server", "set llm.api_key_env, or llm.base_url for a server that needs no key"
	if variable != "" {
		missing, fix = fmt.Sprintf("the variable %s is not set", variable), fmt.Sprintf("export %s=… lets a model classify", variable)
	}
	if !needsModel {
		return checkWarned("lexical, because "+missing, fix)
	}
	if variable != "" {
		fix = fmt.Sprintf("export %s=…, or classifier.mode: auto", variable)
	}
	return checkFailed(fmt.Sprintf("classifier.mode is %s, and %s", mode, missing), fix)
}

// checkCascade trains the lexical classifier to find out whether the cascade avoids
// calls of the model. Other modes have no finding.
func (d *diagnosis) checkCascade(ctx context.Context) Finding {
	if d.Classifier.Mode != classifier.ModeCascade || d.Classifier.Cascade.Accept != config.AcceptAuto {
		return Finding{}
	}
	path, _ := d.Registry.FilePath()
	s, err := capabilities.Load(path)
	if err != nil {
		return checkSkipped("there is no registry to calibrate on")
	}
	model, err := lexical.TrainContext(ctx, classifier.BuildCorpus(s.Catalogue))
	if err != nil {
		return checkSkipped(fmt.Sprintf("the calibration was not finished: %v", err))
	}
	accept := model.AcceptThreshold()
	if math.IsInf(accept, 1) {
		return checkWarned("too few examples to calibrate: the model is called for every request",
			"add examples to the registry, or set classifier.cascade.accept to a number")
	}
	return checkPassed(fmt.Sprintf("the model is not called from a lexical confidence of %.2f", accept))
}
