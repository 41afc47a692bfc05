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

// maxTurns is the number of latest history turns that a model receives.
const maxTurns = 16

// cacheKey identifies a model request. Two inputs that may get different
// replies have different keys.
type cacheKey [sha256.Size]byte

// cacheKeyOf hashes everything the reply depends on. Each part is preceded by
// its length, so that different lists of parts never have the same bytes. The
// registry version is included, so that a reload invalidates all entries. The
// partition is included, so that a caller cannot probe what callers of another
// partition have asked.
func (c *Classifier) cacheKeyOf(in *Input) cacheKey {
	turns := latestTurns(in.History)
	parts := make([]string, 0, 7+2*maxTurns)
	parts = append(parts, c.cfg.Model.Provider(), c.cfg.Model.Model(), prompts.RouterVersion, in.Catalogue.Version, in.Partition, in.Locale, in.Prompt)
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

func latestTurns(history []contract.Turn) []contract.Turn {
	return history[max(0, len(history)-maxTurns):]
}

// replyCache contains classifications by a model, never decisions or failures.
// Its entries are shared and must not be modified. A nil cache is always empty.
type replyCache struct {
	entries *otter.Cache[cacheKey, contract.Classification]
}

func newReplyCache(cfg CacheConfig, now func() time.Time) (*replyCache, error) {
	if cfg.Entries == 0 {
		return nil, nil
	}
	options := otter.Options[cacheKey, contract.Classification]{
		MaximumSize: cfg.Entries,
		// Run housekeeping in the calling goroutine: it is short, and the cache
		// then needs no goroutine of its own.
		Executor: func(work func()) { work() },
	}
	if cfg.TTL > 0 {
		options.ExpiryCalculator = otter.ExpiryWriting[cacheKey, contract.Classification](cfg.TTL)
		options.Clock = cacheClock{now: now, start: now()}
	}
	entries, err := otter.New(&options)
	if err != nil {
		return nil, err
	}
	return &replyCache{entries}, nil
}

func (c *replyCache) get(k cacheKey) (contract.Classification, bool) {
	if c == nil {
		return contract.Classification{}, false
	}
	return c.entries.GetIfPresent(k)
}

func (c *replyCache) put(k cacheKey, clf contract.Classification) {
	if c != nil {
		c.entries.Set(k, clf)
	}
}

// cacheClock adapts the configured clock. It never ticks: expired entries are
// invisible at once, and removed at the next write.
type cacheClock struct {
	now   func() time.Time
	start time.Time
}

// NowNano counts from the start of the clock, so that it is monotonic.
func (c cacheClock) NowNano() int64 { return int64(c.now().Sub(c.start)) }

// Tick returns a channel that never delivers.
func (cacheClock) Tick(time.Duration) <-chan time.Time { return nil }

// cloneClassification copies the parts of a classification that a caller may
// modify.
func cloneClassification(clf contract.Classification) contract.Classification {
	clf.Domains = slices.Clone(clf.Domains)
	clf.Subtasks = slices.Clone(clf.Subtasks)
	for i := range clf.Subtasks {
		clf.Subtasks[i].Domains = slices.Clone(clf.Subtasks[i].Domains)
	}
	return clf
}
