package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/llm"
)

// checkModel checks that the server of the model is reachable, accepts the key and
// has the model.
func (d *diagnosis) checkModel(ctx context.Context) Finding {
	if !d.LLM.IsUsable(d.key) {
		return checkSkipped("none is configured")
	}
	name := d.LLM.Provider + " " + d.LLM.ModelName()
	provider, err := app.OpenProvider(&d.Config, d.opts, d.key)
	if err := errors.Join(err, d.LLM.CheckKeyOwner(d.key)); err != nil {
		return checkFailed(err.Error(), "correct llm in the configuration")
	}
	prober, ok := provider.(llm.Prober)
	if !ok {
		return checkSkipped(name + " cannot be checked")
	}
	if err := prober.Probe(ctx); err != nil {
		return checkFailed(name+": "+err.Error(), suggestModelFix(&d.LLM, d.key.IsSet(), llm.ReasonOf(err)))
	}
	if !d.key.IsSet() {
		detail := name + " is reachable; no key is sent"
		if variable := d.LLM.KeyEnv(); variable != "" {
			detail += ", because " + variable + " is not set"
		}
		return checkPassed(detail)
	}
	return checkPassed(name + " is reachable and accepts the key")
}

// suggestModelFix returns an action for a model that cannot be used.
func suggestModelFix(cfg *config.LLM, keyIsSet bool, reason string) string {
	switch reason {
	case llm.ReasonUnauthorized:
		if !keyIsSet {
			return "set the variable " + cmp.Or(cfg.KeyEnv(), "that llm.api_key_env names")
		}
		return "the key in " + cfg.KeyEnv() + " is not accepted: make a new one, or allow it this model"
	case llm.ReasonRejected:
		return "name a model the server has in llm.model, and check llm.base_url"
	case llm.ReasonInvalidJSON, llm.ReasonInvalidValue:
		if cfg.Provider == config.ProviderOpenAI && cfg.ResponseFormat == llm.FormatJSONSchema {
			return "the server may ignore json_schema: try llm.response_format: json_object, or a larger model"
		}
		return "use a larger model"
	case llm.ReasonMaxTokens:
		return "raise llm.max_output_tokens, or lower llm.thinking"
	case llm.ReasonRateLimited:
		return "the quota is used up: wait, or raise it"
	case llm.ReasonTimeout, llm.ReasonUnavailable:
		return "check the network and llm.base_url; until then the lexical classifier is used"
	case llm.ReasonBadResponse:
		return "llm.base_url does not lead to the API of the provider " + cfg.Provider
	}
	return "see docs/models.md"
}

// ProbeModel classifies one example of the registry with the configured model, which
// takes tokens. It finds what Run cannot: a server that does not support the
// format of the reply, a model that is too slow, or one that does not follow the prompt.
func ProbeModel(ctx context.Context, cfg config.Config, opts app.Options) Finding {
	f := probeModel(ctx, cfg, opts)
	f.Check = "classification"
	return f
}

func probeModel(ctx context.Context, cfg config.Config, opts app.Options) Finding {
	key := cfg.LLM.APIKey(opts.EnvLookup())
	if !cfg.LLM.IsUsable(key) {
		return checkSkipped("no model is configured")
	}
	path, _ := cfg.Registry.FilePath()
	s, err := capabilities.Load(path)
	if err != nil || len(s.Catalogue.Agents) == 0 {
		return checkSkipped("there is no registry with an agent to classify for")
	}
	prompt, intent := probePrompt(s.Catalogue)
	cfg.Classifier.Mode, cfg.Classifier.Cache.Entries = classifier.ModeLLM, 0
	req := &contract.Request{Content: contract.Content{Prompt: prompt}, Options: contract.Options{DryRun: true}}
	resp, err := app.RouteOnce(ctx, cfg, opts, req)
	if err != nil {
		return checkFailed(err.Error(), "correct llm in the configuration")
	}
	clf := &resp.Decision.Classification
	if clf.Source != contract.SourceLLM {
		return checkFailed(fmt.Sprintf("%q: %s", prompt, describeFailedCall(clf)), suggestProbeFix(&cfg, key.IsSet(), clf.Reason))
	}
	detail := fmt.Sprintf("%q is %s, domains %s, confidence %.2f", prompt, clf.Intent, strings.Join(clf.Domains, ", "), clf.Confidence)
	if clf.ModelUse != nil {
		detail += fmt.Sprintf("; %.0f ms, %d tokens", clf.LatencyMS, clf.Tokens.Input+clf.Tokens.Output)
	}
	if clf.Intent != intent {
		return checkWarned(detail+"; the registry has it as an example of "+intent, "use a larger model, or compare caprouter golden run --live")
	}
	return checkPassed(detail)
}

// probePrompt returns the first example of the registry and its intent or, without
// examples, the first intent in words.
func probePrompt(c *capabilities.Catalogue) (prompt, intent string) {
	for _, a := range c.Agents {
		for _, intent := range slices.Sorted(maps.Keys(a.Examples)) {
			if len(a.Examples[intent]) > 0 {
				return a.Examples[intent][0], intent
			}
		}
	}
	intent = c.Intents[0]
	return "please do a " + strings.ReplaceAll(intent, "_", " "), intent
}

// describeFailedCall returns the reason code and the detail of the last call.
func describeFailedCall(clf *contract.Classification) string {
	text := cmp.Or(clf.Reason, llm.ReasonUnavailable)
	if clf.ModelUse != nil && len(clf.Calls) > 0 {
		if detail := clf.Calls[len(clf.Calls)-1].Detail; detail != "" {
			text += ": " + detail
		}
	}
	return text
}

func suggestProbeFix(cfg *config.Config, keyIsSet bool, reason string) string {
	switch reason {
	case llm.ReasonTimeout:
		return fmt.Sprintf("a faster model, less thinking, or a longer classifier.timeout_ms than %d", cfg.Classifier.TimeoutMS)
	case llm.ReasonRejected:
		return "read the server's text above; docs/models.md lists what servers reject"
	}
	return suggestModelFix(&cfg.LLM, keyIsSet, reason)
}
