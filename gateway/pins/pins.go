package pins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caprouter/caprouter/internal/store"
)

// Modes of a Guard.
const (
	FirstUse = "first_use" // the first definition of a tool is pinned
	Approve  = "approve"   // every definition needs approval
	Off      = "off"       // definitions are not compared
)

// Pin is the definition of a tool that may be called.
type Pin struct {
	Action string `json:"action"`
	Hash   string `json:"hash"` // hex SHA-256 of the definition
	// Definition is absent if it is larger than maxStored, or those of its server are larger
	// than maxStoredByServer.
	Definition json.RawMessage `json:"definition,omitempty"`
	At         time.Time       `json:"at"`
}

// maxStored bounds the definitions that are stored. The hash is of the whole definition.
const maxStored = 64 << 10

// Store keeps pins by action.
type Store interface {
	// Get returns the pin, or nil.
	Get(ctx context.Context, action string) (*Pin, error)
	// Create stores the pin unless there is one, and returns the stored one.
	Create(ctx context.Context, p *Pin) (*Pin, error)
	// Put stores the pin.
	Put(ctx context.Context, p *Pin) error
}

// Guard decides which definitions may be called. Its methods may be called from any
// goroutine.
type Guard struct {
	mode  string
	store Store
	now   func() time.Time
}

// NewGuard returns the guard of a mode. "" is FirstUse, and a nil store is one in memory.
func NewGuard(mode string, store Store) (*Guard, error) {
	switch mode {
	case "":
		mode = FirstUse
	case FirstUse, Approve, Off:
	default:
		return nil, fmt.Errorf("pins %q is not supported; known are %s, %s and %s", mode, FirstUse, Approve, Off)
	}
	if store == nil {
		store = NewMemory()
	}
	return &Guard{mode: mode, store: store, now: time.Now}, nil
}

// NewMemoryGuard returns a guard of mode FirstUse with a store in memory.
func NewMemoryGuard() *Guard { return &Guard{mode: FirstUse, store: NewMemory(), now: time.Now} }

// Mode returns the mode.
func (g *Guard) Mode() string { return g.mode }

// Verdict is the result of a check.
type Verdict struct {
	Allowed bool
	Hash    string // of the definition
	Pinned  *Pin   // nil if there is none
}

// Check decides whether a tool with the definition may be called. If the mode is FirstUse
// and the tool has no pin, it gets one within the budget, and as long as the store has room.
func (g *Guard) Check(ctx context.Context, action string, definition json.RawMessage, budget *Budget) (Verdict, error) {
	v := Verdict{Hash: Hash(definition), Allowed: g.mode == Off}
	if v.Allowed {
		return v, nil
	}
	var err error
	if v.Pinned, err = g.store.Get(ctx, action); err == nil && v.Pinned == nil && g.mode == FirstUse && budget.take() {
		p := g.newPin(action, definition)
		if !budget.takeBytes(len(p.Definition)) {
			p.Definition = nil
		}
		v.Pinned, err = g.store.Create(ctx, p)
		if errors.Is(err, store.ErrFull) { // the tools that are pinned can be called
			v.Pinned, err = nil, nil
		}
	}
	if err != nil {
		return v, fmt.Errorf("read the pin of %s: %w", action, err)
	}
	v.Allowed = v.Pinned != nil && v.Pinned.Hash == v.Hash
	return v, nil
}

// Limits of the pins that one server gets at first use while it is in force. Pins are stored
// for good, and all servers share the store.
const (
	MaxFirstUse       = 2000
	maxStoredByServer = 4 << 20
)

// Budget counts the pins that one server has got at first use. The zero value has none, nil
// permits none. Its methods may be called from any goroutine.
type Budget struct {
	mu          sync.Mutex
	pins, bytes int
}

// take counts a pin, and reports whether it is within the limit.
func (b *Budget) take() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pins == MaxFirstUse {
		return false
	}
	b.pins++
	return true
}

// takeBytes counts the bytes of a definition, and reports whether they are within the limit.
func (b *Budget) takeBytes(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes+n > maxStoredByServer {
		return false
	}
	b.bytes += n
	return true
}

// Pin permits calls of a tool with the definition.
func (g *Guard) Pin(ctx context.Context, action string, definition json.RawMessage) error {
	return g.store.Put(ctx, g.newPin(action, definition))
}

func (g *Guard) newPin(action string, definition json.RawMessage) *Pin {
	p := &Pin{Action: action, Hash: Hash(definition), At: g.now().UTC()}
	if len(definition) <= maxStored {
		p.Definition = definition
	}
	return p
}

// Hash returns the hex SHA-256 of a canonical definition.
func Hash(definition json.RawMessage) string {
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:])
}
