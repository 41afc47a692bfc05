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

// Model is the model that is asked: *llm.Client, which holds the retries, the
// breaker and the bound on calls.
type Model interface {
	Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error)
	Provider() string
	Model() string
}

// Config selects how prompts are classified; its zero value works, without a
// model.
type Config struct {
	Mode  string // "" = ModeAuto
	Model Model  // nil = none
	// Timeout bounds everything the model is asked for one prompt, the second
	// call included: 0 = DefaultTimeout.
	Timeout         time.Duration
	MaxOutputTokens int // of the model's reply; 0 = DefaultMaxOutputTokens
	// With more than ShortlistAbove agents the model is shown the ShortlistK
	// that the registry's words speak for: 0 = the defaults.
	ShortlistAbove, ShortlistK int
	Cache                      CacheConfig
	// Accept is the confidence from which ModeCascade takes a lexical
	// classification of a known intent; 0 and more than 1 = never.
	Accept float64
	// AcceptAuto takes that confidence from the calibration of the lexical model
	// instead: never, where there were too few examples to calibrate.
	AcceptAuto bool
	Now        func() time.Time // nil = time.Now; latencies and the cache's ages are measured with it
	Log        *slog.Logger     // hears of nothing but a panic while the model is asked; nil = nobody
}

// CacheConfig bounds the cache of what the model said.
type CacheConfig struct {
	Entries int           // 0 = no cache
	TTL     time.Duration // 0 = an entry does not age
}

// Classifier classifies prompts. It holds no registry: a call brings the one it
// is made for, so that a reload never shows a request two of them.
type Classifier struct {
	mode, why       string
	model           Model
	timeout         time.Duration
	maxOutputTokens int
	shortlistAbove  int
	shortlistK      int
	accept          float64
	acceptAuto      bool
	now             func() time.Time
	log             *slog.Logger
	cache           *cache
	flights         *flights
}

// New returns a Classifier, or an error that says what to change in the
// configuration. With a model it is to be closed.
func New(cfg Config) (*Classifier, error) {
	mode, why, err := chooseMode(&cfg)
	if err != nil {
		return nil, err
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Classifier{
		mode: mode, why: why, model: cfg.Model, now: cfg.Now,
		timeout:         cmp.Or(cfg.Timeout, DefaultTimeout),
		maxOutputTokens: cmp.Or(cfg.MaxOutputTokens, DefaultMaxOutputTokens),
		shortlistAbove:  cmp.Or(cfg.ShortlistAbove, DefaultShortlistAbove),
		shortlistK:      cmp.Or(cfg.ShortlistK, DefaultShortlistK),
		accept:          cfg.Accept,
		acceptAuto:      cfg.AcceptAuto,
		log:             cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)),
	}
	if neverAccepts(c.accept) {
		c.accept = math.Inf(1)
	}
	if c.cache, err = newCache(cfg.Cache, cfg.Now); err != nil {
		return nil, err
	}
	c.flights = newFlights()
	return c, nil
}

func (cfg *Config) check() error {
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

// Close ends the calls to the model that are under way and returns when they
// have. Classify works on without the model.
func (c *Classifier) Close() { c.flights.close() }

// Input is one prompt and what it is classified against. Registry and Lexical
// belong together: the model is trained on the registry's Corpus. Prompt and
// History are masked already, and the model sees them as they are; the lexical
// classifier reads the prompt alone.
type Input struct {
	Prompt    string
	History   []contract.Turn
	Locale    string
	Catalogue *capabilities.Catalogue
	Lexical   *lexical.Model
	// Partition names those who share the model's answers, and the waiting for
	// them: callers of another partition ask anew. No model sees it.
	Partition string
}

// Classify proposes what the prompt is. It does not fail: the worst it says is
// contract.Unknown. It waits for the model no longer than Config.Timeout, and no
// longer than half of the time ctx has left, so that something remains for the
// work itself.
func (c *Classifier) Classify(ctx context.Context, in Input) contract.Classification {
	start := c.now()
	clf := c.classify(ctx, &in)
	clf.LatencyMS = milliseconds(c.now().Sub(start))
	return clf
}

func (c *Classifier) classify(ctx context.Context, in *Input) contract.Classification {
	if c.mode == ModeLexical || in.empty() {
		return propose(in)
	}
	k := c.keyOf(in)
	if clf, ok := c.cache.get(k); ok {
		return c.cached(clf)
	}
	var byWords contract.Classification
	var cascade *contract.Cascade
	if c.mode == ModeCascade {
		byWords = propose(in)
		if cascade = c.cascade(in, &byWords); cascade.ModelSkipped {
			byWords.Cascade = cascade
			return byWords
		}
	}
	said := c.ask(ctx, k, in)
	if said.reason == "" {
		return withCascade(c.accepted(said), cascade)
	}
	if c.mode != ModeCascade {
		byWords = propose(in)
	}
	// Why there is a stand-in says more than what the stand-in left out.
	byWords.Reason = said.reason
	byWords.ModelUse = c.use(said.calls)
	byWords.Cascade = cascade
	return byWords
}

// accepted makes the classification of a caller out of what all who asked share.
func (c *Classifier) accepted(said answer) contract.Classification {
	if said.fromCache {
		return c.cached(said.clf)
	}
	clf := clone(said.clf)
	clf.Source = contract.SourceLLM
	clf.ModelUse = c.use(said.calls)
	return clf
}

func (c *Classifier) cached(stored contract.Classification) contract.Classification {
	clf := clone(stored)
	clf.Source = contract.SourceCache
	clf.ModelUse = c.use(nil)
	return clf
}

// milliseconds is d to the microsecond, as it is written on the wire.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// MinConfidence is the confidence a classification needs to be acted on: what
// the registry says, else what its source is known to be worth. A calibrated
// share of words means something from a half on; a model is asked for as much
// as the match (003 §1).
func MinConfidence(r capabilities.Routing, source contract.Source) float64 {
	if r.MinConfidence != nil {
		return *r.MinConfidence
	}
	switch source {
	case contract.SourceLLM, contract.SourceCache: // the cache holds what a model said
		return min(r.ConfidenceThreshold, 1)
	case contract.SourceLexical, contract.SourcePinned:
	}
	return lexical.RuleThreshold
}
