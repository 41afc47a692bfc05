package classifier

import (
	"fmt"
	"strconv"
)

// Modes of Config.Mode.
const (
	ModeAuto    = "auto"    // ModeLLM where there is a model, else ModeLexical
	ModeLLM     = "llm"     // cache, model, and the registry's words when that fails
	ModeCascade = "cascade" // cache, the registry's words where they are sure enough, else as ModeLLM
	ModeLexical = "lexical" // the registry's own words, no model
)

// chooseMode returns the mode to work in and a clause that says why it is that.
// An error says what to change.
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
			why += cascadeClause(cfg)
		}
		return cfg.Mode, why, nil
	}
	return "", "", fmt.Errorf("mode %q is not known: use %q, %q, %q or %q", cfg.Mode, ModeAuto, ModeLLM, ModeCascade, ModeLexical)
}

func cascadeClause(cfg *Config) string {
	accept := cfg.Accept
	if cfg.AcceptAuto {
		return ", and a lexical classification is accepted from the confidence its calibration gives"
	}
	if neverAccepts(accept) {
		return ", and no lexical classification is sure enough for it"
	}
	return ", and a lexical classification is accepted from a confidence of " + strconv.FormatFloat(accept, 'g', -1, 64)
}

// neverAccepts reports whether the number of Config.Accept lets no lexical
// classification pass. A known intent has at least lexical.RuleThreshold, so nothing is
// lost by 0 being the absence of a number.
func neverAccepts(accept float64) bool { return accept == 0 || accept > 1 }

// Mode returns the mode that is in effect, never ModeAuto, and why.
func (c *Classifier) Mode() (mode, why string) { return c.mode, c.why }
