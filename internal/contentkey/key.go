package contentkey

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// keySize is the size of a key of AES-256 in bytes.
const keySize = 32

// The first byte of a sealed content. JSON never begins with it.
const (
	byMaster  = 1
	byDataKey = 2
)

// ErrAltered means that a content does not decrypt with the key that it names.
var ErrAltered = errors.New("the encrypted content was altered, or belongs elsewhere")

// ID names a data key.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Key is a data key. It is safe for concurrent use.
type Key struct {
	id     ID
	secret [keySize]byte
	aead   cipher.AEAD
}

// NewKey returns a random key.
func NewKey() *Key {
	k := new(Key)
	rand.Read(k.id[:])
	rand.Read(k.secret[:])
	k.aead = newCipher(k.secret[:])
	return k
}

// ParseKey returns the key that Marshal encoded.
func ParseKey(data []byte) (*Key, error) {
	k := new(Key)
	if len(data) != len(k.id)+len(k.secret) {
		return nil, fmt.Errorf("data key: %d bytes, want %d", len(data), len(k.id)+len(k.secret))
	}
	copy(k.secret[:], data[copy(k.id[:], data):])
	k.aead = newCipher(k.secret[:])
	return k, nil
}

// Marshal returns the key in clear, to be sealed by another one.
func (k *Key) Marshal() []byte { return append(append([]byte(nil), k.id[:]...), k.secret[:]...) }

// ID returns the name of the key.
func (k *Key) ID() ID { return k.id }

// Seal encrypts a content.
func (k *Key) Seal(content, associated []byte) []byte {
	out := make([]byte, 0, 1+len(k.id)+len(content)+k.aead.Overhead())
	out = append(append(out, byDataKey), k.id[:]...)
	return k.aead.Seal(out, nil, content, associated)
}

// Open decrypts a content that Seal returned for the same associated data.
func (k *Key) Open(sealed, associated []byte) ([]byte, error) {
	if id, ok := KeyOf(sealed); !ok || id != k.id {
		return nil, ErrAltered
	}
	content, err := k.aead.Open(nil, nil, sealed[1+len(k.id):], associated)
	if err != nil {
		return nil, ErrAltered
	}
	return content, nil
}

// KeyOf returns the name of the data key that a content was sealed with; false if it
// was not sealed with one.
func KeyOf(sealed []byte) (id ID, ok bool) {
	if len(sealed) <= len(id) || sealed[0] != byDataKey {
		return id, false
	}
	copy(id[:], sealed[1:])
	return id, true
}

// newCipher returns AES-256-GCM with random nonces.
func newCipher(secret []byte) cipher.AEAD {
	block, err := aes.NewCipher(secret)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return aead
		}
	}
	panic(err) // only a key of another size is rejected
}
