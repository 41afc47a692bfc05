package audit

import (
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
)

// chainSubjects are the subjects of one chain. The dots separate those of different
// writers.
type chainSubjects struct{ chain, content, rewritten, withoutContents string }

func newChainSubjects(writer string) chainSubjects {
	return chainSubjects{
		chain:           "audit." + writer,
		content:         "audit." + writer + ".content",
		rewritten:       "audit." + writer + ".restated.",
		withoutContents: "audit." + writer + ".bare.",
	}
}

// chainEnd is the end of a chain.
type chainEnd struct {
	chain  chainID
	number uint64 // of the last batch; 0 = none yet
	last   uint64 // position of its last record
	hash   digest // of that record
	seq    uint64 // of its message, or of the last one that was not rewritten; 0 = none
	origin uint64 // of its first message, which may have been rewritten
}

// storedChain reads the chain of one writer in the stream.
type storedChain struct {
	stream   *store.Log
	keys     *contentkey.Keyring
	writer   string
	subjects chainSubjects
	shared   bool                     // other replicas may rewrite its last batches
	end      atomic.Pointer[chainEnd] // of the chain; nil = not known
	clock    clockHistory
	trimmed  atomic.Uint64             // position up to which records are being removed, or were by this process
	newest   atomic.Pointer[time.Time] // of the records since the clock was last set back; nil = not known
}

func newStoredChain(stream *store.Log, keys *contentkey.Keyring, writer string) *storedChain {
	return &storedChain{stream: stream, keys: keys, writer: writer, subjects: newChainSubjects(writer)}
}

func (c *storedChain) newestTime() time.Time {
	if at := c.newest.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
