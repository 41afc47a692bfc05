package classifier

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/llm"
)

// Defaults of Config.
const (
	DefaultTimeout         = 2 * time.Second
	DefaultMaxOutputTokens = 300
	DefaultShortlistAbove  = 20
	DefaultShortlistK      = 10
)

// Model is a language model. *llm.Client implements it, with retries, a circuit
// breaker and a limit of concurrent calls.
type Model interface {
	Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error)
	Provider() string
	Model() string
}

// Config selects how prompts are classified. The zero value works without a
// model.
type Config struct {
	Mode  string // "" = ModeAuto
	Model Model  // nil = none
	// Timeout bounds all model calls for one prompt: 0 = DefaultTimeout.
	Timeout         time.Duration
	MaxOutputTokens int // of the model's reply; 0 = DefaultMaxOutputTokens
	// If there are more than ShortlistAbove agents, the model is shown the
	// ShortlistK most relevant ones: 0 = the defaults.
	ShortlistAbove, ShortlistK int
	Cache                      CacheConfig
	// Accept is the confidence from which ModeCascade accepts a lexical
	// classification of a known intent without the model; 0 and more than 1 =
	// never.
	Accept float64
	// AcceptAuto takes that confidence from the calibration of the lexical
	// model. If the model is not calibrated, nothing is accepted.
	AcceptAuto bool
	// MaskText masks personal data and secrets in the texts of the registry that the model
	// receives; nil = it receives them unchanged.
	MaskText func(text string) string
	Now      func() time.Time // nil = time.Now; for latencies and cache expiry
	Log      *slog.Logger     // receives panics of a model call; nil = discard
}

// CacheConfig bounds the cache of model replies.
type CacheConfig struct {
	Entries int           // 0 = no cache
	TTL     time.Duration // 0 = no expiry
}

// Classifier classifies prompts. It is safe for concurrent use. Each call
// brings its own registry, so that a reload never mixes two registries within a
// request.
type Classifier struct {
	cfg        Config // with the effective mode
	modeReason string
	cache      *replyCache
	calls      *callGroup
}

// New returns a Classifier, or an error that states how to fix the
// configuration. Close it if it has a model.
func New(cfg Config) (*Classifier, error) {
	mode, why, err := chooseMode(&cfg)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkLimits(); err != nil {
		return nil, err
	}
	cfg.Mode = mode
	cfg.setDefaults()
	c := &Classifier{cfg: cfg, modeReason: why, calls: newCallGroup()}
	if c.cache, err = newReplyCache(cfg.Cache, cfg.Now); err != nil {
		return nil, err
	}
	return c, nil
}

func (cfg *Config) setDefaults() {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.MaxOutputTokens = cmp.Or(cfg.MaxOutputTokens, DefaultMaxOutputTokens)
	cfg.ShortlistAbove = cmp.Or(cfg.ShortlistAbove, DefaultShortlistAbove)
	cfg.ShortlistK = cmp.Or(cfg.ShortlistK, DefaultShortlistK)
	if neverAccepts(cfg.Accept) {
		cfg.Accept = math.Inf(1)
	}
	if cfg.MaskText == nil {
		cfg.MaskText = func(text string) string { return text }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
}

func (cfg *Config) checkLimits() error {
	switch {
	case cfg.Timeout < 0:
		return errors.New("the timeout must not be negative")
	case cfg.MaxOutputTokens < 0:
		return errors.New("the number of output tokens must not be negative")
	case cfg.ShortlistAbove < 0, cfg.ShortlistK < 0:
		return errors.New("the sizes of the shortlist must not be negative")
	case cfg.Cache.Entries < 0, cfg.Cache.TTL < 0:
		return errors.New("the size and the age of the cache must not be negative")
	case math.IsNaN(cfg.Accept), cfg.Accept < 0:
		return errors.New("the confidence to accept must be a number from 0 up")
	}
	return nil
}

// Close cancels the model calls in flight and waits until they have ended.
// After that, Classify works without the model.
func (c *Classifier) Close() { c.calls.close() }

// Input is a prompt and what it is classified against. Lexical must be trained
// on the corpus of Catalogue. Prompt and History must be masked already, because
// the model receives them unchanged. The lexical classifier reads the prompt and,
// if this is a follow-up of the previous request, the latest turn of the user.
type Input struct {
	Prompt  string
	History []contract.Turn
	// Previous is the classification of the latest turn of the user in History, if
	// it was dispatched in the same session; else nil.
	Previous  *contract.Classification
	Locale    string
	Catalogue *capabilities.Catalogue
	Lexical   *lexical.Model
	// Partition separates callers: the cache and in-flight calls are shared
	// within a partition only. The model does not receive it.
	Partition string
}

// Classify proposes a classification of the prompt. It always succeeds; without
// evidence the intent is contract.Unknown. It waits for the model at most
// Config.Timeout, and at most half of the time that ctx has left, so that time
// remains for the work itself.
func (c *Classifier) Classify(ctx context.Context, in Input) contract.Classification {
	start := c.cfg.Now()
	clf := c.classifyByMode(ctx, &in)
	clf.LatencyMS = contract.ToMilliseconds(c.cfg.Now().Sub(start))
	return clf
}

func (c *Classifier) classifyByMode(ctx context.Context, in *Input) contract.Classification {
	if c.cfg.Mode == ModeLexical || in.hasNoAgents() {
		return ClassifyLexically(in)
	}
	k := c.cacheKeyOf(in)
	if clf, ok := c.cache.get(k); ok {
		return c.cachedResult(clf)
	}
	var fromLexical contract.Classification
	var cascade *contract.Cascade
	if c.cfg.Mode == ModeCascade {
		fromLexical = ClassifyLexically(in)
		if cascade = c.cascadeDecision(in, &fromLexical); cascade.ModelSkipped {
			fromLexical.Cascade = cascade
			return fromLexical
		}
	}
	fromModel := c.askModel(ctx, k, in)
	if fromModel.reason == "" {
		return withCascade(c.modelClassification(fromModel), cascade)
	}
	if c.cfg.Mode != ModeCascade {
		fromLexical = ClassifyLexically(in)
	}
	// The reason of the model failure replaces that of the lexical result,
	// because it is more useful.
	fromLexical.Reason = fromModel.reason
	fromLexical.ModelUse = c.modelUse(fromModel.calls)
	fromLexical.Cascade = cascade
	return fromLexical
}

// modelClassification returns one caller's copy of a shared result.
func (c *Classifier) modelClassification(fromModel modelResult) contract.Classification {
	if fromModel.fromCache {
		return c.cachedResult(fromModel.clf)
	}
	clf := cloneClassification(fromModel.clf)
	clf.Source = contract.SourceLLM
	clf.ModelUse = c.modelUse(fromModel.calls)
	return clf
}

func (c *Classifier) cachedResult(stored contract.Classification) contract.Classification {
	clf := cloneClassification(stored)
	clf.Source = contract.SourceCache
	clf.ModelUse = c.modelUse(nil)
	return clf
}

// MinConfidence returns the confidence that a classification needs to be acted
// on: the one in the registry or, if it has none, a default for the source.
// Calibrated lexical confidence is meaningful from one half on; a model needs
// the confidence threshold of the match.
func MinConfidence(r capabilities.Routing, source contract.Source) float64 {
	if r.MinConfidence != nil {
		return *r.MinConfidence
	}
	switch source {
	case contract.SourceLLM, contract.SourceCache: // the cache contains model classifications
		return min(r.ConfidenceThreshold, 1)
	case contract.SourceLexical, contract.SourcePinned:
	}
	return lexical.MinActionConfidence
}
