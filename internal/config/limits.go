package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/caprouter/caprouter/internal/limits"
)

// Limits specifies rate limits and admission control.
type Limits struct {
	Classify       Rate `yaml:"classify"`                                 // route and classify requests of each caller
	FallbackAnswer Rate `yaml:"fallback_answer"`                          // answers of policy A for each caller
	Check          Rate `yaml:"check"`                                    // checks of registry files of each caller
	Read           Rate `yaml:"read"`                                     // reads of the decision log and of tickets of each caller
	Register       Rate `yaml:"register"`                                 // registrations of each agent; heartbeats are not limited
	MaxInFlight    int  `yaml:"max_in_flight" validate:"range=1 1000000"` // concurrent requests
	// MaxSchedulingDelayMS is how long goroutines may wait for a processor before requests
	// of the tenants that send the most are delayed. 0 delays none.
	MaxSchedulingDelayMS int `yaml:"max_scheduling_delay_ms" validate:"range=0 10000"`
	LLMTokensPerHour     int `yaml:"llm_tokens_per_hour" validate:"range=0 1000000000000"`
}

// Rate specifies the token bucket of one caller.
type Rate struct {
	RPS   RateSetting `yaml:"rps"`                              // average rate per second; 0 = no limit
	Burst int         `yaml:"burst" validate:"range=1 1000000"` // size of the bucket
}

// RateSetting is a rate per second, or "auto": a default rate for callers with tokens.
// The rate and the bucket of the local caller of auth.mode none are localFactor times
// as large, because all programs of the machine share it.
type RateSetting string

const localFactor = 10

const frequencyAuto RateSetting = "auto"

func defaultLimitsConfig() Limits {
	return Limits{
		Classify:       Rate{RPS: frequencyAuto, Burst: 40},
		FallbackAnswer: Rate{RPS: frequencyAuto, Burst: 5},
		Check:          Rate{RPS: frequencyAuto, Burst: 5},
		Read:           Rate{RPS: frequencyAuto, Burst: 40},
		Register:       Rate{RPS: frequencyAuto, Burst: 10},
		MaxInFlight:    512,

		MaxSchedulingDelayMS: 2,
	}
}

// The rates per second of "auto" for callers with tokens.
const (
	autoClassify       = 20
	autoFallbackAnswer = 2
	autoCheck          = 0.2
	autoRead           = 10
	autoRegister       = 1
)

// ClassifyRate returns the rate at which one caller may route and classify.
func (c *Config) ClassifyRate() limits.Rate {
	return c.Limits.Classify.callerRate(c.Auth.Mode, autoClassify)
}

// ReadRate returns the rate at which one caller may read lists of stored data.
func (c *Config) ReadRate() limits.Rate { return c.Limits.Read.callerRate(c.Auth.Mode, autoRead) }

// AnswerRate returns the rate at which one caller gets answers of policy A.
func (c *Config) AnswerRate() limits.Rate {
	return c.Limits.FallbackAnswer.callerRate(c.Auth.Mode, autoFallbackAnswer)
}

// CheckRate returns the rate at which one caller may have registry files checked.
func (c *Config) CheckRate() limits.Rate {
	return c.Limits.Check.callerRate(c.Auth.Mode, autoCheck)
}

// RegisterRate returns the rate at which one agent may register.
func (c *Config) RegisterRate() limits.Rate {
	return c.Limits.Register.callerRate(c.Auth.Mode, autoRegister)
}

// MaxSchedulingDelay returns the scheduling delay from which requests are delayed.
func (c *Limits) MaxSchedulingDelay() time.Duration {
	return time.Duration(c.MaxSchedulingDelayMS) * time.Millisecond
}

func (c *Limits) validate() error {
	return errors.Join(
		c.Classify.validateRate("limits.classify"),
		c.FallbackAnswer.validateRate("limits.fallback_answer"),
		c.Check.validateRate("limits.check"),
		c.Read.validateRate("limits.read"),
		c.Register.validateRate("limits.register"),
	)
}

// validateBudget refuses a budget that is too small for a single call.
func (c *Config) validateBudget() error {
	if n := c.Limits.LLMTokensPerHour; n > 0 && n <= c.LLM.MaxOutputTokens {
		return fmt.Errorf("limits.llm_tokens_per_hour: one call may take more than %d tokens (llm.max_output_tokens is %d), so the model would never be asked", n, c.LLM.MaxOutputTokens)
	}
	return nil
}

func (c *Rate) validateRate(key string) error {
	if c.RPS != frequencyAuto {
		if n, err := strconv.ParseFloat(string(c.RPS), 64); err != nil || !(n >= 0 && n <= 1e6) || n > 0 && n < 1e-4 {
			return fmt.Errorf("%s.rps: %q is not auto, 0 (no limit) or a number of times a second between 0.0001 and 1000000", key, c.RPS)
		}
	}
	return nil
}

// callerRate returns the rate of one caller, with auto as the rate per second of a
// caller with a token.
func (c *Rate) callerRate(authMode string, auto float64) limits.Rate {
	if c.RPS != frequencyAuto {
		n, _ := strconv.ParseFloat(string(c.RPS), 64) // validated
		return limits.Rate{PerSecond: n, Burst: c.Burst}
	}
	if authMode == AuthNone {
		return limits.Rate{PerSecond: localFactor * auto, Burst: localFactor * c.Burst}
	}
	return limits.Rate{PerSecond: auto, Burst: c.Burst}
}
