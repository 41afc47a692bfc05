package classifier

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/prompts"
)

// maxTurns is how many turns of the history a model is shown, the latest ones.
const maxTurns = 16

// key identifies a question: two inputs that may get different answers have
// different ones.
type key [sha256.Size]byte

// keyOf hashes everything the answer depends on, each part behind its length, so
// that no two lists of parts are the same bytes. The version of the registry is
// one of them: after a reload every answer is asked for anew. So is the
// partition: nobody is to find out what callers of another one have asked.
func (c *Classifier) keyOf(in *Input) key {
	turns := latest(in.History)
	parts := make([]string, 0, 7+2*maxTurns)
	parts = append(parts, c.model.Provider(), c.model.Model(), prompts.RouterVersion, in.Catalogue.Version, in.Partition, in.Locale, in.Prompt)
	for _, turn := range turns {
		parts = append(parts, turn.Role, turn.Content)
	}
	size := 0
	for _, part := range parts {
		size += binary.MaxVarintLen64 + len(part)
	}
	text := make([]byte, 0, size)
	for _, part := range parts {
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}

func latest(history []contract.Turn) []contract.Turn {
	return history[max(0, len(history)-maxTurns):]
}

// cache holds what the model said: classifications, never decisions, and never
// an error. What it holds is shared and must not be written to. nil holds
// nothing.
type cache struct {
	entries *otter.Cache[key, contract.Classification]
}

func newCache(cfg CacheConfig, now func() time.Time) (*cache, error) {
	if cfg.Entries == 0 {
		return nil, nil
	}
	options := otter.Options[key, contract.Classification]{
		MaximumSize: cfg.Entries,
		// Housekeeping is short and has no callbacks: whoever gives cause for it
		// does it, and the cache starts no goroutine.
		Executor: func(work func()) { work() },
	}
	if cfg.TTL > 0 {
		options.ExpiryCalculator = otter.ExpiryWriting[key, contract.Classification](cfg.TTL)
		options.Clock = clock{now: now, start: now()}
	}
	entries, err := otter.New(&options)
	if err != nil {
		return nil, err
	}
	return &cache{entries}, nil
}

func (c *cache) get(k key) (contract.Classification, bool) {
	if c == nil {
		return contract.Classification{}, false
	}
	return c.entries.GetIfPresent(k)
}

func (c *cache) put(k key, clf contract.Classification) {
	if c != nil {
		c.entries.Set(k, clf)
	}
}

// clock shows the cache our time. It never ticks: what has expired is not seen
// from that moment on, and goes when the cache is next written to.
type clock struct {
	now   func() time.Time
	start time.Time
}

// NowNano counts from a moment of the process, so that it is monotonic.
func (c clock) NowNano() int64 { return int64(c.now().Sub(c.start)) }

// Tick returns the channel that never delivers.
func (clock) Tick(time.Duration) <-chan time.Time { return nil }

// clone copies whatever of a classification can be written to.
func clone(clf contract.Classification) contract.Classification {
	clf.Domains = slices.Clone(clf.Domains)
	clf.Subtasks = slices.Clone(clf.Subtasks)
	for i := range clf.Subtasks {
		clf.Subtasks[i].Domains = slices.Clone(clf.Subtasks[i].Domains)
	}
	return clf
}
