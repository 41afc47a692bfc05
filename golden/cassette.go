package golden

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
	"github.com/caprouter/caprouter/prompts"
)

// Interaction is what a model once said to one question. The question itself is
// not kept, only its hash.
type Interaction struct {
	Key           string               `json:"key"`
	Provider      string               `json:"provider"`
	Model         string               `json:"model"`
	PromptVersion string               `json:"prompt_version"`
	Purpose       contract.CallPurpose `json:"purpose"`
	Reply         string               `json:"reply"`
	Truncated     bool                 `json:"truncated,omitzero"`
	Tokens        contract.Tokens      `json:"tokens"`
	// Of a model that had nothing to say: llm_blocked or llm_empty, and why.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Cassette is what one model said, by question. It does not change.
type Cassette struct {
	provider, model string
	recordings      map[string]Interaction
}

// Len returns the number of recordings.
func (c *Cassette) Len() int { return len(c.recordings) }

// Provider returns whose model was recorded.
func (c *Cassette) Provider() string { return c.provider }

// Model returns the model that was recorded.
func (c *Cassette) Model() string { return c.model }

// questionKey hashes all that the reply of a model depends on, each part behind
// its length, so that no two lists of parts are the same bytes.
func questionKey(provider, model string, req *llm.Request) (string, error) {
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

// ReadCassette reads a cassette. The error is strictyaml.Errors when the file is
// at fault.
func ReadCassette(file string) (*Cassette, error) {
	data, err := strictyaml.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseCassette(file, data)
}

func parseCassette(file string, data []byte) (*Cassette, error) {
	c := &Cassette{recordings: map[string]Interaction{}}
	fault := func(line int, format string, args ...any) error {
		return strictyaml.Errors{{File: file, Line: line, Column: 1, Detail: fmt.Sprintf(format, args...)}}
	}
	for i, line := range textLines(data) {
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
		switch _, twice := c.recordings[r.Key]; {
		case twice:
			return nil, fault(i+1, "the recording %q is there twice: remove one of them, or record again", shown(r.Key))
		case r.Provider != c.provider || r.Model != c.model:
			return nil, fault(i+1, "is of another model (%s %s) than the lines before (%s %s): a cassette is of one; record again",
				shown(r.Provider), shown(r.Model), shown(c.provider), shown(c.model))
		}
		c.recordings[r.Key] = r
	}
	if c.Len() == 0 {
		return nil, fault(1, "holds no recording: make it with caprouter golden record")
	}
	return c, nil
}

// Write writes the cassette, a recording a line, sorted by key: the same
// recordings are the same bytes.
func (c *Cassette) Write(w io.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(c.recordings)) {
		r := c.recordings[key]
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

// reasonNoRecording is the outcome of a call that a cassette has no reply to.
const reasonNoRecording = "no_recording"

// replay is the model of a cassette. It reaches no network.
type replay struct{ *Cassette }

// Generate says what was recorded.
func (p replay) Generate(_ context.Context, req *llm.Request) (*llm.Reply, error) {
	key, err := questionKey(p.provider, p.model, req)
	if err != nil {
		return nil, err
	}
	r, ok := p.recordings[key]
	if !ok {
		return nil, &llm.Error{Reason: reasonNoRecording, Detail: "the cassette has no recording " + key[:12] + "…: record it again"}
	}
	return r.replay()
}

func (r *Interaction) replay() (*llm.Reply, error) {
	if r.Reason != "" {
		return nil, &llm.Error{Reason: r.Reason, Detail: r.Detail}
	}
	return &llm.Reply{Text: r.Reply, Truncated: r.Truncated, Tokens: r.Tokens}, nil
}

// Provider and Model of the embedded cassette make replay a classifier.Model:
// what is asked is what was asked of the recorded one.

// unrecorded reports whether a classification was made without a reply that the
// cassette should have had.
func unrecorded(clf *contract.Classification) bool {
	return clf.ModelUse != nil && slices.ContainsFunc(clf.Calls, func(c contract.ModelCall) bool {
		return c.Outcome == reasonNoRecording
	})
}
