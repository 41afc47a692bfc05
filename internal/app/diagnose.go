package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/redact"
)

// The levels of a Finding.
const (
	LevelOK   = "ok"
	LevelWarn = "warn" // works, but perhaps not as expected
	LevelFail = "fail" // serve would not start, or the model cannot be used
	LevelSkip = "skip" // not checked, because a precondition is missing
)

// Finding is the result of one check of Diagnose.
type Finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // suggested action; "" = none
}

// Diagnose checks all that a router needs, in the order of the start, and reports each
// finding at once. It writes and removes a probe file in the data directory or its
// parent, and changes nothing else. It asks the server of the model whether it accepts
// the key and has the model, without generating text.
func Diagnose(ctx context.Context, cfg Config, opts Options, report func(Finding)) {
	if err := cfg.Validate(); err != nil {
		report(Finding{"configuration", LevelFail, err.Error(), "mend the key that is named"})
		return
	}
	report(Finding{Check: "configuration", Level: LevelOK, Detail: "every key is known and in range"})
	report(diagnoseRegistry(&cfg))
	report(diagnoseDataDir(ctx, &cfg))
	report(diagnoseStore(&cfg))
	report(diagnoseWebhook(&cfg, opts.lookupEnv()))
	report(diagnoseCallers(&cfg, opts.lookupEnv()))
	report(diagnoseTLS(&cfg))
	report(diagnoseListen(ctx, cfg.Listen))
	report(diagnoseMasking(&cfg))
	key := cfg.LLM.apiKey(opts.lookupEnv())
	report(diagnoseKey(&cfg.LLM, &cfg.Classifier, key))
	if cfg.Classifier.Mode == classifier.ModeCascade && cfg.Classifier.Cascade.Accept == acceptAuto {
		report(diagnoseCascade(&cfg))
	}
	report(diagnoseModel(ctx, &cfg, &opts, key))
}

// diagnoseCascade trains the lexical classifier to find out whether the cascade avoids
// calls of the model.
func diagnoseCascade(cfg *Config) Finding {
	f := Finding{Check: "cascade", Level: LevelSkip, Detail: "there is no registry to calibrate on"}
	path, _ := cfg.Registry.filePath()
	s, err := capabilities.Load(path)
	if err != nil {
		return f
	}
	accept := lexical.Train(classifier.BuildCorpus(s.Catalogue)).AcceptThreshold()
	if math.IsInf(accept, 1) {
		f.Level, f.Detail = LevelWarn, "too few examples to calibrate: the model is asked for every request"
		f.Fix = "add examples to the registry, or set classifier.cascade.accept to a number"
		return f
	}
	f.Level, f.Detail = LevelOK, fmt.Sprintf("the model is spared from a confidence of %.2f", accept)
	return f
}

func diagnoseRegistry(cfg *Config) Finding {
	f := Finding{Check: "registry", Level: LevelFail}
	path, optional := cfg.Registry.filePath()
	s, err := capabilities.Load(path)
	switch {
	case err != nil && optional && errors.Is(err, fs.ErrNotExist):
		f.Level, f.Detail, f.Fix = LevelWarn, "there is no "+path+" yet: every request would be unsupported", "run caprouter init, or name a file with --registry"
		return f
	case err != nil:
		f.Detail, f.Fix = err.Error(), "mend it; caprouter validate "+path+" shows every mistake"
		return f
	}
	f.Level = LevelOK
	f.Detail = fmt.Sprintf("%s: %d agents, %d intents, %d domains", path, len(s.Catalogue.Agents), len(s.Catalogue.Intents), len(s.Catalogue.Domains))
	if n := len(capabilities.Lint(s)); n > 0 {
		f.Level, f.Fix = LevelWarn, "caprouter lint "+path+" explains them"
		f.Detail += fmt.Sprintf("; lint has %d remarks", n)
	}
	return f
}

func diagnoseListen(ctx context.Context, addr string) Finding {
	f := Finding{Check: "listen", Level: LevelOK, Detail: addr + " is free"}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		err = l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		f.Level, f.Detail, f.Fix = LevelWarn, addr+" is in use", "fine when that is caprouter; else choose another --listen"
		return f
	}
	if err != nil {
		f.Level, f.Detail, f.Fix = LevelFail, err.Error(), "choose another --listen"
	}
	return f
}

func diagnoseMasking(cfg *Config) Finding {
	f := Finding{Check: "masking", Level: LevelOK, Detail: "all kinds are masked before a model or a log sees them"}
	switch kinds := cfg.Redact.Kinds; {
	case slices.Equal(kinds, StringList{kindsDefault}):
	case slices.Equal(kinds, StringList{kindsNone}):
		f.Level, f.Detail, f.Fix = LevelWarn, "nothing is masked: a model and the log see what callers write", "redact.kinds: default masks all kinds"
	default:
		f.Level, f.Detail = LevelWarn, fmt.Sprintf("only %s are masked, of %s", strings.Join(kinds, ", "), strings.Join(redact.Kinds(), ", "))
		f.Fix = "redact.kinds: default masks all of them"
	}
	return f
}

// diagnoseKey reports how requests would be classified, and why.
func diagnoseKey(cfg *LLMConfig, clf *ClassifierConfig, key llm.Secret) Finding {
	f := Finding{Check: "classifier", Level: LevelOK}
	wantsModel := clf.Mode == classifier.ModeLLM || clf.Mode == classifier.ModeCascade
	switch {
	case clf.Mode == classifier.ModeLexical:
		f.Detail = "lexical, as classifier.mode says"
	case cfg.isUsable(key) && clf.Mode == classifier.ModeAuto:
		f.Detail = "llm, because there is a model to ask; lexical stands in when it does not answer"
	case cfg.isUsable(key):
		f.Detail = clf.Mode + ", as classifier.mode says"
	case cfg.APIKeyEnv == "" && wantsModel:
		f.Level, f.Detail = LevelFail, fmt.Sprintf("classifier.mode is %s, and llm names neither a key nor a server", clf.Mode)
		f.Fix = "set llm.api_key_env, or llm.base_url for a server that needs no key"
	case cfg.APIKeyEnv == "":
		f.Level, f.Detail = LevelWarn, "lexical, because llm names neither a key nor a server"
		f.Fix = "set llm.api_key_env, or llm.base_url for a server that needs no key"
	case wantsModel:
		f.Level, f.Detail = LevelFail, fmt.Sprintf("classifier.mode is %s, and the variable %s is not set", clf.Mode, cfg.APIKeyEnv)
		f.Fix = fmt.Sprintf("export %s=…, or classifier.mode: auto", cfg.APIKeyEnv)
	default:
		f.Level, f.Detail = LevelWarn, fmt.Sprintf("lexical, because the variable %s is not set", cfg.APIKeyEnv)
		f.Fix = fmt.Sprintf("export %s=… lets a model classify", cfg.APIKeyEnv)
	}
	return f
}

// diagnoseModel checks that the server of the model is reachable, accepts the key and
// has the model.
func diagnoseModel(ctx context.Context, cfg *Config, opts *Options, key llm.Secret) Finding {
	f := Finding{Check: "model", Level: LevelSkip}
	if !cfg.LLM.isUsable(key) {
		f.Detail = "none is configured"
		return f
	}
	f.Level = LevelFail
	model := modelConfig(cfg, opts, key)
	name := model.Provider + " " + model.Model
	provider, err := openProvider(model)
	if err := errors.Join(err, cfg.LLM.checkKeyOwner(key)); err != nil {
		f.Detail, f.Fix = err.Error(), "mend llm in the configuration"
		return f
	}
	prober, ok := provider.(llm.Prober)
	if !ok {
		f.Level, f.Detail = LevelSkip, name+" cannot be asked"
		return f
	}
	if err := prober.Probe(ctx); err != nil {
		f.Detail, f.Fix = name+": "+err.Error(), suggestModelFix(&cfg.LLM, llm.ReasonOf(err))
		return f
	}
	f.Level, f.Detail = LevelOK, name+" is reachable and takes the key"
	if !key.IsSet() {
		f.Detail = name + " is reachable"
	}
	return f
}

// suggestModelFix returns an action for a model that cannot be used.
func suggestModelFix(cfg *LLMConfig, reason string) string {
	switch reason {
	case llm.ReasonUnauthorized:
		return "the key in " + cfg.APIKeyEnv + " is not accepted: make a new one, or allow it this model"
	case llm.ReasonRejected:
		return "name a model the server has in llm.model, and check llm.base_url"
	case llm.ReasonRateLimited:
		return "the quota is used up: wait, or raise it"
	case llm.ReasonTimeout, llm.ReasonUnavailable:
		return "check the network and llm.base_url; until then the lexical classifier stands in"
	case llm.ReasonBadResponse:
		return "llm.base_url does not lead to the API of the provider " + cfg.Provider
	}
	return "see docs/models.md"
}
