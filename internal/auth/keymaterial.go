package auth

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

const (
	maxMaterialBytes  = 16 << 10
	secretFileMask    = 0o077 // bits that only the owner may have
	publicKeyFileMask = 0o002 // the write bit for other users
)

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
