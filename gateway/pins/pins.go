package pins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
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
	// Definition is absent if it is larger than maxStored.
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

// Check decides whether a tool with the definition may be called.
func (g *Guard) Check(ctx context.Context, action string, definition json.RawMessage) (Verdict, error) {
	v := Verdict{Hash: Hash(definition), Allowed: g.mode == Off}
	if v.Allowed {
		return v, nil
	}
	var err error
	if v.Pinned, err = g.store.Get(ctx, action); err == nil && v.Pinned == nil && g.mode == FirstUse {
		v.Pinned, err = g.store.Create(ctx, g.newPin(action, definition))
	}
	if err != nil {
		return v, fmt.Errorf("read the pin of %s: %w", action, err)
	}
	v.Allowed = v.Pinned != nil && v.Pinned.Hash == v.Hash
	return v, nil
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
