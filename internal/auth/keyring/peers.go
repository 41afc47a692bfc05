package keyring

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/weakkey"
)

// PublicKey is the public part of a signing key and of the keys derived from it. A router
// gives its accepted keys to its replicas, which accept the tokens that they verify.
type PublicKey struct {
	Signing []byte `json:"signing"` // Ed25519, 32 bytes
	ES256   []byte `json:"es256"`   // P-256, an uncompressed point of 65 bytes (SEC 1)
	Caller  []byte `json:"caller"`  // Ed25519, of tokens for callers; in no key set
}

// PublicKeys returns the public parts of the accepted keys, the signing key first.
func (r *Ring) PublicKeys() []PublicKey {
	accepted := r.store.viewAt(r.store.now()).accepted
	keys := make([]PublicKey, len(accepted))
	for i, k := range accepted {
		keys[i] = PublicKey{Signing: k.public, ES256: k.private.es256Point, Caller: k.private.callerPublic}
	}
	return keys
}

// SetPeerKeys replaces the keys of other replicas. Tokens for callers that they verify are
// accepted, and the key set contains them. A key that was a key of this router is ignored,
// because its own ring decides whether it is accepted. If a key is not valid, SetPeerKeys
// returns an error and changes nothing.
//
// The caller must have authenticated the keys: the owner of a key that is added can sign
// tokens for callers.
func (r *Ring) SetPeerKeys(keys []PublicKey) error {
	peers := &peerKeys{byID: map[string]*peerKey{}, byCaller: map[string]*peerKey{}}
	for i := range keys {
		k, err := newPeerKey(&keys[i])
		if err != nil {
			return fmt.Errorf("public key %d of a replica: %w", i, err)
		}
		if peers.byID[k.id] != nil {
			continue // two replicas have the same key
		}
		peers.all = append(peers.all, k)
		peers.byID[k.id], peers.byCaller[k.callerID] = k, k
	}
	r.store.peers.Store(peers)
	return nil
}

// VerifyPeer is Verify for the accepted keys of other replicas.
func (r *Ring) VerifyPeer(purpose, keyID string, data, sig []byte) bool {
	k := r.store.peer(r.store.peers.Load().ofID(keyID))
	return k != nil && ed25519.Verify(k.public, domainSeparated(purpose, data), sig)
}

// peerKeys are the keys of other replicas. They are immutable; nil = none.
type peerKeys struct {
	all            []*peerKey
	byID, byCaller map[string]*peerKey // byCaller: by the kid of tokens for callers
}

type peerKey struct {
	*keyPair
	es256        []byte // entry of a key set
	callerID     string
	callerPublic ed25519.PublicKey
}

func newPeerKey(key *PublicKey) (*peerKey, error) {
	for _, public := range [][]byte{key.Signing, key.Caller} {
		if err := weakkey.CheckPublic(ed25519.PublicKey(public)); err != nil {
			return nil, err
		}
	}
	point, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key.ES256)
	if err != nil {
		return nil, fmt.Errorf("P-256: %w", err)
	}
	if err := weakkey.CheckPublic(point); err != nil {
		return nil, err
	}
	pair, err := newPublicKeyPair(slices.Clone(key.Signing))
	if err != nil {
		return nil, err
	}
	_, entry, err := jwk.EncodeP256(point)
	if err != nil {
		return nil, err
	}
	caller := ed25519.PublicKey(slices.Clone(key.Caller))
	return &peerKey{pair, entry, jwk.Thumbprint(caller), caller}, nil
}

func (p *peerKeys) ofID(id string) *peerKey {
	if p == nil {
		return nil
	}
	return p.byID[id]
}

func (p *peerKeys) ofCallers(kid string) *peerKey {
	if p == nil {
		return nil
	}
	return p.byCaller[kid]
}

// peer returns k, unless it is nil or was a key of this router.
func (s *keyStore) peer(k *peerKey) *peerKey {
	if k == nil || s.state.Load().byID[k.id] != nil {
		return nil
	}
	return k
}

// appendTo returns the key set with the keys of the replicas, except those that are or were
// keys of this router.
func (p *peerKeys) appendTo(jwks []byte, own *keyStoreState) []byte {
	if p == nil || len(p.all) == 0 {
		return jwks
	}
	set := bytes.Clone(bytes.TrimSuffix(jwks, []byte(jwksEnd)))
	for _, k := range p.all {
		if own.byID[k.id] == nil {
			set = append(append(set, ','), k.entry...)
			set = append(append(set, ','), k.es256...)
		}
	}
	return append(set, jwksEnd...)
}
