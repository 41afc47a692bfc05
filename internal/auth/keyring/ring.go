package keyring

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// redacted replaces a key in all output.
const redacted = "<redacted>"

// Ring holds the keys of a router. It is safe for concurrent use.
type Ring struct {
	store *keyStore // a pointer, because fmt does not follow it in an unexported field
}

// keyStore loads and holds the keys of a Ring.
type keyStore struct {
	dir    string // "" = keys in memory
	now    func() time.Time
	state  atomic.Pointer[keyStoreState]
	peers  atomic.Pointer[peerKeys]   // of other replicas; nil = none
	shared atomic.Pointer[sharedMACs] // of callback tokens; nil = derived from the signing keys

	mu          sync.Mutex // one Reload at a time
	files       keyFiles   // source of state
	nextCleanup time.Time  // earliest next cleanup; see Reload
}

// keyStoreState is an immutable pair of the keys and their current view.
type keyStoreState struct {
	keys keyList
	byID map[string]*signingKey
	view *keyView
}

// New returns a ring with a new key in memory.
func New() (*Ring, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	pair, err := newKeyPair(key)
	if err != nil {
		return nil, err
	}
	s := &keyStore{now: time.Now}
	s.setKeys(keyList{{keyPair: pair, created: s.now()}})
	return &Ring{s}, nil
}

// setKeys replaces the keys of the ring.
func (s *keyStore) setKeys(keys keyList) {
	byID := make(map[string]*signingKey, len(keys))
	for _, k := range keys {
		byID[k.id] = k
	}
	s.state.Store(&keyStoreState{keys: keys, byID: byID, view: keys.viewAt(s.now())})
}

// viewAt returns the use of the keys at a time.
func (s *keyStore) viewAt(now time.Time) *keyView {
	state := s.state.Load()
	if state.view.isValidAt(now) {
		return state.view
	}
	next := *state
	next.view = state.keys.viewAt(now)
	s.state.CompareAndSwap(state, &next) // if it fails, another goroutine stored a view or other keys
	return next.view
}

// JWKS returns the key set of all accepted keys (RFC 7517, RFC 8037), for both
// algorithms of tokens for agents, with those of the other replicas. The bytes must not
// be changed.
func (r *Ring) JWKS() []byte {
	own := r.store.viewAt(r.store.now())
	return r.store.peers.Load().appendTo(own.jwks, r.store.state.Load())
}

// currentKey returns the key that signs now.
func (r *Ring) currentKey() *signingKey { return r.store.viewAt(r.store.now()).signing }

// Keys describes the keys of the ring, youngest first.
func (r *Ring) Keys(now time.Time) []Info { return r.store.state.Load().keys.keyInfos(now) }

// signatureDomain is the prefix of all data that Sign signs. No token has this
// prefix, so a signature over data is never valid for a token.
const signatureDomain = "caprouter/"

// KeyID returns the id of the current signing key: its RFC 7638 thumbprint.
func (r *Ring) KeyID() string { return r.currentKey().id }

// Sign returns the Ed25519 signature over data and the id of the key. purpose is a
// constant of the program; the signature is valid for this purpose only. Use the
// returned id, because KeyID may change meanwhile.
func (r *Ring) Sign(purpose string, data []byte) (keyID string, sig []byte) {
	key := r.currentKey()
	return key.id, key.private.signData(domainSeparated(purpose, data))
}

// Verify reports whether sig is the signature of the key over purpose and data. It
// accepts every key of the ring, because signed records outlive tokens and the
// private halves of keys.
func (r *Ring) Verify(purpose, keyID string, data, sig []byte) bool {
	key := r.store.state.Load().byID[keyID]
	return key != nil && ed25519.Verify(key.public, domainSeparated(purpose, data), sig)
}

// domainSeparated joins purpose and data with a separator, so that no other split
// of the bytes gives the same input.
func domainSeparated(purpose string, data []byte) []byte {
	if strings.Contains(purpose, "\x00") {
		panic("keyring: a purpose must not hold a NUL")
	}
	message := make([]byte, 0, len(signatureDomain)+len(purpose)+1+len(data))
	message = append(message, signatureDomain...)
	message = append(message, purpose...)
	message = append(message, 0)
	return append(message, data...)
}

// Format prints the redaction for every verb.
func (Ring) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue logs the redaction.
func (Ring) LogValue() slog.Value { return slog.StringValue(redacted) }
