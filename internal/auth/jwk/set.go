package jwk

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caprouter/caprouter/internal/strictjson"
)

const (
	// MaxSetBytes is the maximum size of a set.
	MaxSetBytes = 256 << 10
	maxSetKeys  = 100

	// AddressHint is the fix for a document that is not a key set.
	AddressHint = "set jwks_url to the jwks_uri in the provider's /.well-known/openid-configuration"
)

var errSharedID = errors.New("another key of the set has the same kid")

// UnusableKey is a key of a set that cannot verify tokens.
type UnusableKey struct {
	Index  int    // in the set
	ID     string // kid; "" = none, or it cannot be read
	Reason error  // an OtherUseError if the key is meant for something else
}

// ParseSet decodes a set of public keys. check returns an error for a key that is too
// weak. An unusable key does not invalidate the others, because sets contain keys for
// encryption and for other algorithms. A malformed set is an error.
func ParseSet(data []byte, check func(crypto.PublicKey) error) (usable []*Key, unusable []UnusableKey, err error) {
	if len(data) > MaxSetBytes {
		return nil, nil, fmt.Errorf("key set: longer than %d bytes; %s", MaxSetBytes, AddressHint)
	}
	var set struct {
		Keys    []json.RawMessage `json:"keys"`
		Address json.RawMessage   `json:"jwks_uri"`
	}
	if err := strictjson.UnmarshalAllowUnknown(data, &set); err != nil {
		return nil, nil, fmt.Errorf("key set: %w; %s", err, AddressHint)
	}
	switch {
	case set.Keys == nil && set.Address != nil:
		return nil, nil, fmt.Errorf("key set: it is the discovery document: set jwks_url to its jwks_uri, %.256s", set.Address)
	case set.Keys == nil:
		return nil, nil, errors.New("key set: has no member keys; " + AddressHint)
	case len(set.Keys) > maxSetKeys:
		return nil, nil, fmt.Errorf("key set: has %d keys, more than %d", len(set.Keys), maxSetKeys)
	}
	ids := make(map[string]int, len(set.Keys)) // number of keys with this kid, usable or not
	indexes := make([]int, 0, len(set.Keys))
	for i, raw := range set.Keys {
		key, id, err := parseKey(raw)
		if id != "" {
			ids[id]++
		}
		if err == nil {
			err = check(key.Public)
		}
		if err != nil {
			unusable = append(unusable, UnusableKey{Index: i, ID: id, Reason: err})
			continue
		}
		usable, indexes = append(usable, key), append(indexes, i)
	}
	// Drop every key whose kid is not unique.
	unique := usable[:0]
	for i, key := range usable {
		if ids[key.ID] > 1 {
			unusable = append(unusable, UnusableKey{Index: indexes[i], ID: key.ID, Reason: errSharedID})
			continue
		}
		unique = append(unique, key)
	}
	return unique, unusable, nil
}
