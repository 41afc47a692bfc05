package golden

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/prompts"
)

// RecordConfig says how a cassette is made.
type RecordConfig struct {
	// Known is what was recorded before: what it holds is not asked again, unless
	// Again says so. It may be nil.
	Existing  *Cassette
	Overwrite bool
	// Part says that the cases are a part of those the cassette is for: what they
	// do not need is kept for the others.
	Partial bool
	// Scrub takes out of a reply what must not be in a file: the key of the
	// model. nil takes out nothing.
	Scrub func(string) string
}

// RecordResult is what came of recording.
type RecordResult struct {
	Report *Report
	// Cassette holds what the cases need; after an interruption or a failure, and
	// of a part of the cases, what was known before as well. It is nil when there
	// is nothing to write.
	Cassette *Cassette
	Asked    int // questions the model was asked
	Reused   int // that were recorded before
	Dropped  int // recordings that no case needs any more
	// Failed are the texts of the errors that kept questions from being
	// recorded, with how often each came.
	Failed map[string]int
}

// Record runs the cases with the model of cfg.Classifier and keeps what it says.
// A cassette is of one model: Known of another one is an error, before anything
// is asked.
func Record(ctx context.Context, cfg Config, rc RecordConfig) (*RecordResult, error) {
	if cfg.Classifier.Model == nil || cfg.Cassette != nil {
		return nil, errors.New("golden: recording needs a model to ask, and no cassette")
	}
	if m, old := cfg.Classifier.Model, rc.Existing; old != nil && (old.provider != m.Provider() || old.model != m.Model()) {
		return nil, &ModelMismatchError{Cassette: old.provider + " " + old.model, Asked: m.Provider() + " " + m.Model()}
	}
	if rc.Scrub == nil {
		rc.Scrub = func(s string) string { return s }
	}
	rec := &recorder{model: cfg.Classifier.Model, rc: rc, kept: map[string]Interaction{}, failed: map[string]int{}}
	cfg.Classifier.Model = rec
	cfg.Classifier.Mode = classifier.ModeLLM // what a cascade would leave out as well
	cfg.Classifier.Timeout = patience        // nobody is waiting for an answer
	report, err := Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	made := &RecordResult{Report: report, Asked: rec.asked, Reused: rec.reused, Failed: rec.failed}
	made.Cassette, made.Dropped = rec.cassette(report.Interrupted)
	return made, nil
}

// ModelMismatchError says that a cassette holds what another model said.
type ModelMismatchError struct{ Cassette, Asked string } // provider and model

func (e *ModelMismatchError) Error() string {
	return fmt.Sprintf("the cassette is of %s, and the model to ask is %s: a cassette is of one model", e.Cassette, e.Asked)
}

// recorder is a model that remembers what another one says.
type recorder struct {
	model classifier.Model
	rc    RecordConfig

	mu        sync.Mutex
	kept      map[string]Interaction
	failed    map[string]int
	calledOff bool // a question was, so that it is neither kept nor failed
	asked     int
	reused    int
}

// Provider returns the provider of the model that is asked.
func (r *recorder) Provider() string { return r.model.Provider() }

// Model returns the model that is asked.
func (r *recorder) Model() string { return r.model.Model() }

// Generate asks the model, unless the reply is known.
func (r *recorder) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	key, err := questionKey(r.Provider(), r.Model(), req)
	if err != nil {
		return nil, err
	}
	if known, ok := r.known(key); ok {
		return known.replay()
	}
	reply, err := r.model.Generate(ctx, req)
	made := Interaction{
		Key: key, Provider: r.Provider(), Model: r.Model(), PromptVersion: prompts.RouterVersion, Purpose: req.Purpose,
	}
	switch reason := llm.ReasonOf(err); {
	case err == nil && reply != nil:
		made.Reply, made.Truncated, made.Tokens = r.rc.Scrub(reply.Text), reply.Truncated, reply.Tokens
	case reason == llm.ReasonBlocked, reason == llm.ReasonEmpty:
		made.Reason, made.Detail = reason, r.rc.Scrub(detailOf(err))
	default:
		// It says something about the network or the key, not about the question.
		r.fail(ctx, err)
		return reply, err
	}
	r.keep(made)
	return made.replay()
}

// known looks a question up in the cassette there was.
func (r *recorder) known(key string) (Interaction, bool) {
	if r.rc.Existing == nil || r.rc.Overwrite {
		return Interaction{}, false
	}
	made, ok := r.rc.Existing.recordings[key]
	if ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reused++
		r.kept[key] = made
	}
	return made, ok
}

func (r *recorder) keep(made Interaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.kept[made.Key] = made
}

func (r *recorder) fail(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) { // nobody waits for it any more
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calledOff = true
		return
	}
	text := "the model said nothing"
	if err != nil {
		text = r.rc.Scrub(err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.failed[text]++
}

func detailOf(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Detail
	}
	return ""
}

// cassette is what was kept, and how many recordings went. They go when no case
// needs them any more; where not every case was run, or not every question
// answered, nobody knows that.
func (r *recorder) cassette(interrupted bool) (c *Cassette, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = &Cassette{provider: r.Provider(), model: r.Model(), recordings: maps.Clone(r.kept)}
	if r.rc.Existing != nil {
		keep := r.rc.Partial || interrupted || r.calledOff || len(r.failed) > 0
		for key, made := range r.rc.Existing.recordings {
			switch _, here := c.recordings[key]; {
			case here:
			case keep:
				c.recordings[key] = made
			default:
				dropped++
			}
		}
	}
	if c.Len() == 0 {
		return nil, 0
	}
	return c, dropped
}
