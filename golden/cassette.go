package golden

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
	"github.com/caprouter/caprouter/prompts"
)

// Interaction is a recorded model call: the hash of the request and the reply.
type Interaction struct {
	Key           string               `json:"key"`
	Provider      string               `json:"provider"`
	Model         string               `json:"model"`
	PromptVersion string               `json:"prompt_version"`
	Purpose       contract.CallPurpose `json:"purpose"`
	Reply         string               `json:"reply"`
	Truncated     bool                 `json:"truncated,omitzero"`
	Tokens        contract.Tokens      `json:"tokens"`
	// Set if there was no reply: llm_blocked or llm_empty, with details.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Cassette contains the recorded interactions of one model (record and replay).
// It is immutable.
type Cassette struct {
	provider, model string
	interactions    map[string]Interaction
}

// Len returns the number of interactions.
func (c *Cassette) Len() int { return len(c.interactions) }

// Provider returns the provider of the recorded model.
func (c *Cassette) Provider() string { return c.provider }

// Model returns the name of the recorded model.
func (c *Cassette) Model() string { return c.model }

// interactionKey hashes everything the reply depends on. Each part is preceded
// by its length, so that different lists of parts never have the same bytes.
func interactionKey(provider, model string, req *llm.Request) (string, error) {
	schema, err := strictjson.Marshal(req.Schema)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, part := range []string{
		provider, model, prompts.RouterVersion, req.System, req.User, string(schema), strconv.Itoa(req.MaxOutputTokens),
	} {
		hash.Write(binary.AppendUvarint(nil, uint64(len(part))))
		hash.Write([]byte(part))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// ReadCassette reads a cassette. If its content is invalid, the error is
// strictyaml.Errors.
func ReadCassette(file string) (*Cassette, error) {
	data, err := strictyaml.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseCassette(file, data)
}

func parseCassette(file string, data []byte) (*Cassette, error) {
	c := &Cassette{interactions: map[string]Interaction{}}
	fault := func(line int, format string, args ...any) error {
		return strictyaml.Errors{{File: file, Line: line, Column: 1, Detail: fmt.Sprintf(format, args...)}}
	}
	for i, line := range splitLines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var r Interaction
		if err := strictjson.Unmarshal(line, &r); err != nil {
			return nil, fault(i+1, "is no recording: %s: record again", err)
		}
		if c.Len() == 0 {
			c.provider, c.model = r.Provider, r.Model
		}
		switch _, twice := c.interactions[r.Key]; {
		case twice:
			return nil, fault(i+1, "the interaction %q occurs twice: remove one of them, or record again", truncateValue(r.Key))
		case r.Provider != c.provider || r.Model != c.model:
			return nil, fault(i+1, "is of another model (%s %s) than the lines before (%s %s): a cassette is of one; record again",
				truncateValue(r.Provider), truncateValue(r.Model), truncateValue(c.provider), truncateValue(c.model))
		}
		c.interactions[r.Key] = r
	}
	if c.Len() == 0 {
		return nil, fault(1, "holds no recording: make it with caprouter golden record")
	}
	return c, nil
}

// Write writes one interaction per line, sorted by key, so that equal cassettes
// have equal bytes.
func (c *Cassette) Write(w io.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(c.interactions)) {
		r := c.interactions[key]
		line, err := strictjson.Marshal(&r)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// reasonNotRecorded is the outcome of a call that is not in the cassette.
const reasonNotRecorded = "no_recording"

// replayModel replays a cassette as a classifier.Model, without a network.
// Provider and Model are those of the cassette.
type replayModel struct{ *Cassette }

// Generate returns the recorded reply.
func (p replayModel) Generate(_ context.Context, req *llm.Request) (*llm.Reply, error) {
	key, err := interactionKey(p.provider, p.model, req)
	if err != nil {
		return nil, err
	}
	r, ok := p.interactions[key]
	if !ok {
		return nil, &llm.Error{Reason: reasonNotRecorded, Detail: "the cassette has no recording " + key[:12] + "…: record it again"}
	}
	return r.replayReply()
}

func (r *Interaction) replayReply() (*llm.Reply, error) {
	if r.Reason != "" {
		return nil, &llm.Error{Reason: r.Reason, Detail: r.Detail}
	}
	return &llm.Reply{Text: r.Reply, Truncated: r.Truncated, Tokens: r.Tokens}, nil
}

// isUnrecorded reports whether a model call of the classification was not in
// the cassette.
func isUnrecorded(clf *contract.Classification) bool {
	return clf.ModelUse != nil && slices.ContainsFunc(clf.Calls, func(c contract.ModelCall) bool {
		return c.Outcome == reasonNotRecorded
	})
}

// RecordConfig configures recording.
type RecordConfig struct {
	// Existing contains earlier interactions, which are reused unless Overwrite
	// is set. It may be nil.
	Existing  *Cassette
	Overwrite bool
	// Partial means that only some of the cassette's cases are run:
	// interactions that they do not use are kept.
	Partial bool
	// Scrub removes secrets, such as the model's key, from a reply. It may be
	// nil.
	Scrub func(string) string
}

// RecordResult is the result of Record.
type RecordResult struct {
	Report *Report
	// Cassette contains the interactions that the cases use. After an
	// interruption, a failure or a partial run it also contains all existing
	// ones. It is nil if there are none.
	Cassette *Cassette
	Asked    int // calls to the model
	Reused   int // existing interactions used
	Dropped  int // existing interactions that no case uses
	// Failed counts the error texts of calls that could not be recorded.
	Failed map[string]int
}

// Record runs the cases with the model of cfg.Classifier and records its
// replies. A cassette belongs to one model: if Existing is from another one,
// Record returns a ModelMismatchError before any call.
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
	rec := &recordingModel{model: cfg.Classifier.Model, cfg: rc, recorded: map[string]Interaction{}, failed: map[string]int{}}
	cfg.Classifier.Model = rec
	cfg.Classifier.Mode = classifier.ModeLLM // a cascade would skip calls
	cfg.Classifier.Timeout = modelTimeout    // no caller waits
	report, err := Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	made := &RecordResult{Report: report, Asked: rec.asked, Reused: rec.reused, Failed: rec.failed}
	made.Cassette, made.Dropped = rec.buildCassette(report.Interrupted)
	return made, nil
}

// ModelMismatchError reports that a cassette was recorded with another model.
type ModelMismatchError struct{ Cassette, Asked string } // provider and model

func (e *ModelMismatchError) Error() string {
	return fmt.Sprintf("the cassette is of %s, and the model to ask is %s: a cassette is of one model", e.Cassette, e.Asked)
}

// recordingModel records the replies of another model.
type recordingModel struct {
	model classifier.Model
	cfg   RecordConfig

	mu        sync.Mutex
	recorded  map[string]Interaction
	failed    map[string]int
	cancelled bool // a call was cancelled, and is neither recorded nor failed
	asked     int
	reused    int
}

// Provider returns the provider of the recorded model.
func (r *recordingModel) Provider() string { return r.model.Provider() }

// Model returns the name of the recorded model.
func (r *recordingModel) Model() string { return r.model.Model() }

// Generate calls the model, unless the reply is recorded.
func (r *recordingModel) Generate(ctx context.Context, req *llm.Request) (*llm.Reply, error) {
	key, err := interactionKey(r.Provider(), r.Model(), req)
	if err != nil {
		return nil, err
	}
	if known, ok := r.lookup(key); ok {
		return known.replayReply()
	}
	reply, err := r.model.Generate(ctx, req)
	made := Interaction{
		Key: key, Provider: r.Provider(), Model: r.Model(), PromptVersion: prompts.RouterVersion, Purpose: req.Purpose,
	}
	switch reason := llm.ReasonOf(err); {
	case err == nil && reply != nil:
		made.Reply, made.Truncated, made.Tokens = r.cfg.Scrub(reply.Text), reply.Truncated, reply.Tokens
	case reason == llm.ReasonBlocked, reason == llm.ReasonEmpty:
		made.Reason, made.Detail = reason, r.cfg.Scrub(errorDetail(err))
	default:
		// The error is about the network or the key, not about the request.
		r.recordFailure(ctx, err)
		return reply, err
	}
	r.record(made)
	return made.replayReply()
}

// lookup returns the existing interaction.
func (r *recordingModel) lookup(key string) (Interaction, bool) {
	if r.cfg.Existing == nil || r.cfg.Overwrite {
		return Interaction{}, false
	}
	made, ok := r.cfg.Existing.interactions[key]
	if ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reused++
		r.recorded[key] = made
	}
	return made, ok
}

func (r *recordingModel) record(made Interaction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.recorded[made.Key] = made
}

func (r *recordingModel) recordFailure(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) { // the caller gave up
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cancelled = true
		return
	}
	text := "the model returned no reply"
	if err != nil {
		text = r.cfg.Scrub(err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.failed[text]++
}

func errorDetail(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Detail
	}
	return ""
}

// buildCassette returns the cassette and the number of dropped interactions.
// Unused interactions are dropped only if all cases were run and all calls
// succeeded, because otherwise they may still be needed.
func (r *recordingModel) buildCassette(interrupted bool) (c *Cassette, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = &Cassette{provider: r.Provider(), model: r.Model(), interactions: maps.Clone(r.recorded)}
	if r.cfg.Existing != nil {
		keep := r.cfg.Partial || interrupted || r.cancelled || len(r.failed) > 0
		for key, made := range r.cfg.Existing.interactions {
			switch _, here := c.interactions[key]; {
			case here:
			case keep:
				c.interactions[key] = made
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
