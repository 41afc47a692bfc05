package quota

import (
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/caprouter/caprouter/contract"
)

// Config configures a Ledger.
type Config struct {
	Part  string  // what is stored, for errors: "idempotency keys"
	Limit int64   // bytes of all owners; 0 = no limit
	Share float64 // of Limit that one owner may use; 0 or 1 = all of it
	// MaxAge is how long a value stays after its last write; 0 = no limit.
	MaxAge time.Duration
	// Removable reports that values may be removed before their age, to make room.
	Removable bool
	// Held reports that values stay until Release, for example requests until they
	// end: until then they neither expire nor are removable.
	Held bool
	// OnTrim is called with the number of values that were removed before their age,
	// to make room. Nil = none.
	OnTrim func(owner Owner, values int)
	Now    func() time.Time // nil = time.Now
}

// Ledger counts the stored bytes of one part by owner. It is safe for concurrent use.
type Ledger struct {
	cfg   Config
	share int64 // bytes
	seed  maphash.Seed
	epoch time.Time // of entry.written

	mu       sync.Mutex
	entries  map[uint64]*entry
	accounts map[Owner]*account
	total    int64
	recounts uint64 // number of Recounts that have begun

	recounting bool // a Recount is in progress
}

// entry is one stored value.
type entry struct {
	account *account
	id      uint64 // hash of the key
	key     string // of a removable value
	bytes   int64
	written time.Duration // of the last write, since the epoch of the ledger
	queued  bool          // in the queue of its account
	loaded  bool          // its size is known from a write or from the store
	count   uint64        // number of the last Recount that found it
}

// account is what one owner has stored.
type account struct {
	owner Owner
	bytes int64
	count int
	queue entryQueue // the removable values; may contain values that were deleted
}

// overhead estimates what the engine stores beside a key and its value.
const overhead = 160

// New returns an empty Ledger.
func New(cfg Config) *Ledger {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnTrim == nil {
		cfg.OnTrim = func(Owner, int) {}
	}
	if !(cfg.Share > 0 && cfg.Share < 1) {
		cfg.Share = 1
	}
	return &Ledger{
		cfg: cfg, share: max(1, int64(cfg.Share*float64(cfg.Limit))), seed: maphash.MakeSeed(), epoch: cfg.Now(),
		entries: map[uint64]*entry{}, accounts: map[Owner]*account{},
	}
}

// Unlimited returns a Ledger that admits everything and counts nothing.
func Unlimited() *Ledger { return New(Config{}) }

func (l *Ledger) unlimited() bool { return l.cfg.Limit <= 0 }

// Share returns the part of the limit that one owner may use.
func (l *Ledger) Share() float64 { return l.cfg.Share }

// Admit records that the owner is about to create a key, or returns quota_exceeded if
// its share is used up. A key that is counted already is admitted.
func (l *Ledger) Admit(owner Owner, key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlimited() || l.entries[l.hash(key)] != nil {
		return nil
	}
	if a := l.accounts[owner]; a != nil && a.bytes+overhead > l.share {
		if l.expire(a); a.bytes+overhead > l.share {
			return l.exceeded(a)
		}
	}
	l.put(owner, key, int64(len(key))+overhead, l.cfg.Now())
	return nil
}

// Count records that the owner is about to create a key, whether its share is used up
// or not.
func (l *Ledger) Count(owner Owner, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.unlimited() && l.entries[l.hash(key)] == nil {
		l.put(owner, key, int64(len(key))+overhead, l.cfg.Now())
	}
}

// Load counts a value that was stored before the start, unless it was written or
// deleted since. During a Recount it also updates the size of a value that is counted
// already.
func (l *Ledger) Load(owner Owner, key string, size int, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unlimited() {
		return
	}
	bytes := int64(len(key)+size) + overhead
	e := l.entries[l.hash(key)]
	switch {
	case e == nil:
		e = l.put(owner, key, bytes, at)
	case l.recounting:
		l.resize(e, bytes)
		e.written = max(e.written, at.Sub(l.epoch))
	default:
		return
	}
	e.loaded, e.count = true, l.recounts
}

// Recount counts the values again, because other processes have written to the bucket:
// load calls Load for every value. Values that it does not find, and that were not written
// since it began, are not counted any more.
func (l *Ledger) Recount(load func() error) error {
	l.mu.Lock()
	l.recounts++
	l.recounting = true
	begin := l.cfg.Now().Sub(l.epoch)
	l.mu.Unlock()
	err := load()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recounting = false
	if err != nil {
		return err
	}
	for _, e := range l.entries {
		if e.count != l.recounts && e.written < begin {
			l.remove(e)
		}
	}
	return nil
}

// Written updates the size of a key after each write of its bucket; a negative size
// means that the key was deleted. It is the callback of store.BucketConfig.OnWrite.
func (l *Ledger) Written(key string, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[l.hash(key)]
	switch {
	case e == nil:
	case size < 0:
		l.remove(e)
	default:
		l.resize(e, int64(len(key)+size)+overhead)
		e.written, e.loaded = l.cfg.Now().Sub(l.epoch), true
	}
}

// Withdraw removes a key that Admit counted and that was not created.
func (l *Ledger) Withdraw(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[l.hash(key)]; e != nil && !e.loaded {
		l.remove(e)
	}
}

// Release makes a held value removable.
func (l *Ledger) Release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[l.hash(key)]; e != nil {
		e.account.enqueue(e)
	}
}

// Excess returns by how much the owner exceeds its share.
func (l *Ledger) Excess(owner Owner) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[owner]
	if a == nil {
		return 0
	}
	l.expire(a)
	return max(0, a.bytes+overhead-l.share)
}

// Exceeded returns the error of an owner whose share is used up.
func (l *Ledger) Exceeded(owner Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[owner]
	if a == nil {
		a = &account{owner: owner}
	}
	return l.exceeded(a)
}

func (l *Ledger) exceeded(a *account) error {
	return &contract.Error{Code: contract.CodeQuotaExceeded, Message: fmt.Sprintf(
		"the share of the store for %s is used up (%d of %d bytes, store.tenant_share); erase some, or wait until they expire",
		l.cfg.Part, a.bytes, l.share)}
}

// BytesOf returns a part of the limit, from 0 to 1, in bytes.
func (l *Ledger) BytesOf(part float64) int64 { return int64(part * float64(l.cfg.Limit)) }

// Usage returns the bytes of every owner, without those that have expired.
func (l *Ledger) Usage() map[Owner]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	usage := make(map[Owner]int64, len(l.accounts))
	for _, a := range maps.Clone(l.accounts) { // expire removes empty ones
		if l.expire(a); a.bytes > 0 {
			usage[a.owner] = a.bytes
		}
	}
	return usage
}

func (l *Ledger) hash(key string) uint64 { return maphash.String(l.seed, key) }

func (l *Ledger) put(owner Owner, key string, bytes int64, at time.Time) *entry {
	a := l.accounts[owner]
	if a == nil {
		a = &account{owner: owner}
		l.accounts[owner] = a
	}
	e := &entry{account: a, id: l.hash(key), written: at.Sub(l.epoch)}
	if l.cfg.Removable {
		e.key = key
	}
	l.entries[e.id] = e
	a.count++
	l.resize(e, bytes)
	if !l.cfg.Held {
		e.account.enqueue(e)
	}
	return e
}

func (l *Ledger) resize(e *entry, bytes int64) {
	e.account.bytes += bytes - e.bytes
	l.total += bytes - e.bytes
	e.bytes = bytes
}

func (l *Ledger) remove(e *entry) {
	l.resize(e, 0)
	delete(l.entries, e.id)
	a := e.account
	e.account = nil
	if a.count--; a.count == 0 {
		delete(l.accounts, a.owner)
	}
}

// expire removes the values that the bucket has dropped because of their age.
func (l *Ledger) expire(a *account) {
	if l.cfg.MaxAge <= 0 {
		return
	}
	cutoff := l.cfg.Now().Add(-l.cfg.MaxAge).Sub(l.epoch)
	for e := a.oldest(); e != nil && e.written < cutoff; e = a.oldest() {
		l.remove(e)
	}
}
