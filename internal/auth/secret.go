package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

const (
	minSecretBytes    = 32 // RFC 7518, section 3.2
	minDistinctBytes  = 10 // 32 random hexadecimal digits have fewer in one of ten thousand cases
	maxMaterialBytes  = 16 << 10
	secretFileMask    = 0o077 // bits that only the owner may have
	publicKeyFileMask = 0o002 // the write bit for other users
)

// checkSecret returns an error if the secret can be guessed or looked up. It does
// not prove that a secret is strong.
func checkSecret(secret []byte) error {
	switch {
	case len(secret) == 0:
		return errors.New("the secret is empty")
	case bytes.Contains(secret, []byte("-----BEGIN ")) || isPublicKey(secret):
		return errors.New("the secret is a key file, and half of such keys are public")
	case len(secret) < minSecretBytes:
		return fmt.Errorf("the secret is %d bytes long, HS256 needs %d or more", len(secret), minSecretBytes)
	case len(secret) > maxMaterialBytes:
		return fmt.Errorf("the secret is longer than %d bytes", maxMaterialBytes)
	}
	digest := sha256.Sum256(secret)
	if source, ok := wellKnownSecrets()[hex.EncodeToString(digest[:])]; ok {
		return fmt.Errorf("the secret is that of %s, which is published", source)
	}
	switch {
	case isRepetition(secret):
		return errors.New("the secret is a short text again and again")
	case isSequence(secret):
		return errors.New("the secret is a sequence")
	case countDistinct(secret) < minDistinctBytes:
		return fmt.Errorf("the secret is made of fewer than %d different bytes", minDistinctBytes)
	case countWithoutPlaceholders(secret) < minSecretBytes:
		return fmt.Errorf("the secret is made of words such as secret and changeme, and has fewer than %d bytes beside them", minSecretBytes)
	}
	return nil
}

func isPublicKey(der []byte) bool {
	_, err := x509.ParsePKIXPublicKey(der)
	return err == nil
}

// isRepetition reports whether the secret repeats the same bytes at least twice;
// the last repetition may be incomplete.
func isRepetition(secret []byte) bool {
	for period := 1; period <= len(secret)/2; period++ {
		if bytes.HasPrefix(secret, secret[period:]) {
			return true
		}
	}
	return false
}

// isSequence reports whether half of the bytes differ from their neighbour by the
// same number, as in abcdefgh and 99887766.
func isSequence(secret []byte) bool {
	var steps [256]int
	for i, b := range secret[1:] {
		if steps[b-secret[i]]++; steps[b-secret[i]] >= len(secret)/2 {
			return true
		}
	}
	return false
}

func countDistinct(secret []byte) int {
	var seen [256]bool
	n := 0
	for _, b := range secret {
		if !seen[b] {
			seen[b] = true
			n++
		}
	}
	return n
}

// countWithoutPlaceholders returns the number of bytes outside of placeholder
// words.
func countWithoutPlaceholders(secret []byte) int {
	rest := bytes.Clone(secret)
	for i, b := range rest {
		if 'A' <= b && b <= 'Z' {
			rest[i] = b + 'a' - 'A'
		}
	}
	for _, word := range placeholderWords() {
		rest = bytes.ReplaceAll(rest, []byte(word), nil)
	}
	return len(rest)
}

// ReadSecretFile reads a secret without its trailing line end. It returns an error
// if other users than the owner can access the file.
func ReadSecretFile(path string) ([]byte, error) {
	secret, err := readKeyMaterial(path, secretFileMask)
	if err != nil {
		return nil, fmt.Errorf("secret file: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(secret, []byte("\n")), []byte("\r")), nil
}

// ReadPublicKeyFile reads the file of a public key. It returns an error if every
// user can write to it, because the key could be replaced.
func ReadPublicKeyFile(path string) ([]byte, error) {
	key, err := readKeyMaterial(path, publicKeyFileMask)
	if err != nil {
		return nil, fmt.Errorf("public key file: %w", err)
	}
	return key, nil
}

// readKeyMaterial reads a small regular file whose mode has none of the forbidden
// bits. The path may be a symbolic link, as for secrets mounted into containers,
// because the opened file is checked.
func readKeyMaterial(path string, forbidden fs.FileMode) ([]byte, error) {
	named, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() { // opening a pipe would block until it has a writer
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	mode := opened.Mode().Perm()
	switch {
	case mode&forbidden != 0 && runtime.GOOS != "windows": // Windows has no such bits
		return nil, fmt.Errorf("%s has mode %04o, which lets others use it: run chmod %04o %s", path, mode, mode&^forbidden, path)
	case opened.Size() > maxMaterialBytes:
		return nil, fmt.Errorf("%s is %d bytes long, more than %d", path, opened.Size(), maxMaterialBytes)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxMaterialBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return content, nil
}
