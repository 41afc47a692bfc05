package contentkey

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const saltSize = 16

// Keyring holds master keys. It is immutable and safe for concurrent use.
type Keyring struct {
	source string // where the keys come from, for errors
	keys   []masterKey

	salt [saltSize]byte
	aead cipher.AEAD // with the subkey of the first key and salt
}

type masterKey struct {
	id     masterID
	secret []byte
}

// masterID is derived from the key, so that a ring finds its keys without names in the
// configuration.
type masterID [8]byte

func (id masterID) String() string { return hex.EncodeToString(id[:]) }

// UnknownKeyError reports a content whose master key is not in the ring.
type UnknownKeyError struct {
	KeyID  string
	Source string // of the ring
	Known  []string
}

func (e *UnknownKeyError) Error() string {
	known := "none"
	if len(e.Known) > 0 {
		known = "only " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("stored contents are encrypted with the key %s, and %s contains %s: add that key there in a line of its own",
		e.KeyID, e.Source, known)
}

// Parse returns the keys in a text: one in each line, 32 bytes as base64. Empty lines and
// lines that begin with # are ignored; commas separate keys too. Source names the origin
// of the text in errors.
func Parse(text, source string) (*Keyring, error) {
	r := &Keyring{source: source}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for word := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n' }) {
			secret, err := base64.StdEncoding.DecodeString(word)
			if err != nil || len(secret) != keySize {
				return nil, fmt.Errorf("content keys: line %d of %s is not %d bytes as base64: make a key with: openssl rand -base64 %d", number, source, keySize, keySize)
			}
			if bytes.Count(secret, secret[:1]) == len(secret) {
				return nil, fmt.Errorf("content keys: the key in line %d of %s is not random: make one with: openssl rand -base64 %d", number, source, keySize)
			}
			r.keys = append(r.keys, masterKey{id: newMasterID(secret), secret: secret})
		}
	}
	if len(r.keys) == 0 {
		return nil, fmt.Errorf("content keys: %s contains no key: make one with: openssl rand -base64 %d", source, keySize)
	}
	rand.Read(r.salt[:])
	r.aead = r.keys[0].subkey(r.salt[:])
	return r, nil
}

func newMasterID(secret []byte) (id masterID) {
	sum := sha256.Sum256(append([]byte("caprouter content key\x00"), secret...))
	copy(id[:], sum[:])
	return id
}

// subkey returns the cipher of a process.
func (m *masterKey) subkey(salt []byte) cipher.AEAD {
	secret, err := hkdf.Key(sha256.New, m.secret, salt, "caprouter content", keySize)
	if err != nil {
		panic(err) // only a longer subkey is rejected
	}
	return newCipher(secret)
}

// CurrentID returns the name of the key that encrypts.
func (r *Keyring) CurrentID() string { return r.keys[0].id.String() }

// IDs returns the names of all keys, that of the one that encrypts first.
func (r *Keyring) IDs() []string {
	ids := make([]string, len(r.keys))
	for i := range r.keys {
		ids[i] = r.keys[i].id.String()
	}
	return ids
}

// Seal encrypts a content with the first key.
func (r *Keyring) Seal(content, associated []byte) []byte {
	return r.AppendSeal(make([]byte, 0, r.SealedSize(len(content))), content, associated)
}

// AppendSeal appends a content to dst as Seal returns it.
func (r *Keyring) AppendSeal(dst, content, associated []byte) []byte {
	dst = append(append(append(dst, byMaster), r.keys[0].id[:]...), r.salt[:]...)
	return r.aead.Seal(dst, nil, content, associated)
}

// SealedSize returns the size of a sealed content of size bytes.
func (r *Keyring) SealedSize(size int) int {
	return 1 + len(masterID{}) + saltSize + size + r.aead.Overhead()
}

// Open decrypts a content that Seal returned for the same associated data. It returns an
// *UnknownKeyError if the key is not in the ring.
func (r *Keyring) Open(sealed, associated []byte) ([]byte, error) {
	var id masterID
	if len(sealed) < 1+len(id)+saltSize || sealed[0] != byMaster {
		return nil, ErrAltered
	}
	copy(id[:], sealed[1:])
	salt, rest := sealed[1+len(id):][:saltSize], sealed[1+len(id)+saltSize:]
	for i := range r.keys {
		if r.keys[i].id != id {
			continue
		}
		aead := r.aead
		if i > 0 || !bytes.Equal(salt, r.salt[:]) {
			aead = r.keys[i].subkey(salt)
		}
		content, err := aead.Open(nil, nil, rest, associated)
		if err != nil {
			return nil, ErrAltered
		}
		return content, nil
	}
	return nil, &UnknownKeyError{KeyID: id.String(), Source: r.source, Known: r.IDs()}
}

// IsUnknownKey reports whether a content could not be decrypted because its master key
// is not in the ring.
func IsUnknownKey(err error) bool {
	_, ok := errors.AsType[*UnknownKeyError](err)
	return ok
}

// SealedByCurrent reports whether the content was sealed with the first key.
func (r *Keyring) SealedByCurrent(sealed []byte) bool {
	id := r.keys[0].id
	return len(sealed) > len(id) && sealed[0] == byMaster && bytes.Equal(sealed[1:][:len(id)], id[:])
}
