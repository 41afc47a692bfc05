package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/fallbackpolicy"
	"github.com/caprouter/caprouter/internal/modeltext"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// DefaultTimeout bounds a request that does not set a timeout.
const DefaultTimeout = 30 * time.Second

// Config contains everything that New does not require. The zero value works.
type Config struct {
	Timeout  time.Duration    // of a request that does not set one; 0 = DefaultTimeout
	Redactor *redact.Redactor // nil = mask all kinds
	// SessionTrigger specifies when a request of a session is classified again:
	// session.EveryRequest (also if empty), UserTurn or NewSession.
	SessionTrigger string
	Storage        Storage
	Model          modeltext.Model            // of direct answers (policy A) and summaries; nil = none
	Answers        fallbackpolicy.AnswerLimit // nil = no limit
	// SummarizeResults lets the model combine the results of several agents into the answer.
	SummarizeResults bool
	// AnswerByDefault selects policy A for a registry whose policy is auto.
	AnswerByDefault bool

	// IsRevoked reports whether the token of a caller was signed by a key that is
	// revoked; StopRevoked then ends its requests. nil = they continue.
	IsRevoked func(*contract.Caller) bool

	Logger  *slog.Logger       // nil = discard
	Metrics *telemetry.Metrics // nil = telemetry.DiscardMetrics()
	Tracer  *telemetry.Tracer  // of asynchronous requests; nil = their traces are not recorded
	Now     func() time.Time   // nil = time.Now
	NewID   func() string      // nil = NewID
}

// Classifier proposes a classification. It does not fail: its worst proposal is
// contract.Unknown, with the reason.
type Classifier interface {
	Classify(ctx context.Context, in classifier.Input) contract.Classification
}

// setDefaults validates the configuration and replaces all zero values.
func (cfg *Config) setDefaults() error {
	if cfg.Timeout < 0 || cfg.Timeout > contract.MaxTimeoutMS*time.Millisecond {
		return errors.New("router: the timeout must be between 0 and 10 minutes")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = telemetry.DiscardMetrics()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = NewID
	}
	if cfg.IsRevoked == nil {
		cfg.IsRevoked = func(*contract.Caller) bool { return false }
	}
	if cfg.Answers == nil {
		cfg.Answers = fallbackpolicy.Unlimited{}
	}
	if err := cfg.Storage.setDefaults(cfg.Logger); err != nil {
		return err
	}
	if cfg.Redactor == nil {
		var err error
		if cfg.Redactor, err = redact.New(redact.Config{}); err != nil {
			return fmt.Errorf("router: %w", err)
		}
	}
	return nil
}
