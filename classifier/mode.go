package classifier

import (
	"fmt"
	"math"
	"strconv"

	"github.com/caprouter/caprouter/contract"
)

// Values of Config.Mode. "Lexical" is the lexical classifier.
const (
	ModeAuto    = "auto"    // ModeLLM with a model, else ModeLexical
	ModeLLM     = "llm"     // cache, then model, then lexical if that fails
	ModeCascade = "cascade" // cache, then lexical if it is confident, else as ModeLLM
	ModeLexical = "lexical" // lexical only
)

// chooseMode returns the effective mode and its reason, or an error that states
// how to fix the configuration.
func chooseMode(cfg *Config) (mode, why string, err error) {
	hasModel := cfg.Model != nil
	switch cfg.Mode {
	case "", ModeAuto:
		if hasModel {
			return ModeLLM, "classifier.mode is auto, and a model is configured", nil
		}
		return ModeLexical, "classifier.mode is auto, and no model is configured", nil
	case ModeLexical:
		return ModeLexical, "classifier.mode is lexical", nil
	case ModeLLM, ModeCascade:
		if !hasModel {
			return "", "", fmt.Errorf("mode %q needs a model: configure one under llm, or use %q or %q",
				cfg.Mode, ModeAuto, ModeLexical)
		}
		why = "classifier.mode is " + cfg.Mode
		if cfg.Mode == ModeCascade {
			why += describeAccept(cfg)
		}
		return cfg.Mode, why, nil
	}
	return "", "", fmt.Errorf("mode %q is not known: use %q, %q, %q or %q", cfg.Mode, ModeAuto, ModeLLM, ModeCascade, ModeLexical)
}

func describeAccept(cfg *Config) string {
	accept := cfg.Accept
	if cfg.AcceptAuto {
		return ", and a lexical classification is accepted from the confidence its calibration gives"
	}
	if neverAccepts(accept) {
		return ", and no lexical classification is sure enough for it"
	}
	return ", and a lexical classification is accepted from a confidence of " + strconv.FormatFloat(accept, 'g', -1, 64)
}

// neverAccepts reports whether Config.Accept accepts no lexical classification.
// 0 can mean "never", because a known intent has at least
// lexical.MinActionConfidence.
func neverAccepts(accept float64) bool { return accept == 0 || accept > 1 }

// Mode returns the effective mode, which is never ModeAuto, and its reason.
func (c *Classifier) Mode() (mode, why string) { return c.cfg.Mode, c.modeReason }

// cascadeDecision decides whether the lexical classification is confident
// enough to skip the model. A follow-up is left to the model, which receives the
// conversation.
func (c *Classifier) cascadeDecision(in *Input, fromLexical *contract.Classification) *contract.Cascade {
	accept := c.acceptThreshold(in)
	k := &contract.Cascade{
		Intent: fromLexical.Intent, Confidence: fromLexical.Confidence,
		ModelSkipped: fromLexical.Intent != contract.Unknown && fromLexical.Confidence >= accept && fromLexical.Reason != ReasonFollowUp,
	}
	if !math.IsInf(accept, 1) {
		k.Accept = &accept
	}
	return k
}

// acceptThreshold returns the confidence from which the model is skipped.
func (c *Classifier) acceptThreshold(in *Input) float64 {
	if c.cfg.AcceptAuto {
		return in.Lexical.AcceptThreshold()
	}
	return c.cfg.Accept
}

// withCascade records whether the model agrees with the lexical classification.
// k is nil in other modes.
func withCascade(clf contract.Classification, k *contract.Cascade) contract.Classification {
	if k == nil {
		return clf
	}
	agrees := clf.Intent == k.Intent
	k.Agrees = &agrees
	clf.Cascade = k
	return clf
}
