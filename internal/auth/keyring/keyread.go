package keyring

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/datadir"
)

// Fixes for a file that is not a valid key.
const (
	recreateHint = "delete it and a new key is created at the next start"
	retiredHint  = "move it away; its signatures are then not accepted"
)

// keyTimes are written in lines before the PEM block, where RFC 7468 permits text
// that other programs ignore. Unlike file times, they survive copying.
type keyTimes struct{ created, retired, revoked time.Time }

const (
	createdLine = "Created: "
	retiredLine = "Retired: "
	revokedLine = "Revoked: "
)

func (t keyTimes) encodePEM(block *pem.Block) []byte {
	var b strings.Builder
	for _, line := range t.timeLines() {
		if !line.at.IsZero() {
			b.WriteString(line.label + line.at.UTC().Format(time.RFC3339Nano) + "\n")
		}
	}
	return append([]byte(b.String()), pem.EncodeToMemory(block)...)
}

type timeLine struct {
	label string
	at    *time.Time
}

func (t *keyTimes) timeLines() []timeLine {
	return []timeLine{{createdLine, &t.created}, {retiredLine, &t.retired}, {revokedLine, &t.revoked}}
}

// parseLines parses the known lines; each may be missing.
func (t *keyTimes) parseLines(content string) error {
	text, _, _ := strings.Cut(content, "-----BEGIN ")
	for line := range strings.Lines(text) {
		for _, known := range t.timeLines() {
			value, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), known.label)
			if !ok {
				continue
			}
			at, err := time.Parse(time.RFC3339, value)
			if err != nil {
				return fmt.Errorf("%q is not a time: write it like 2006-01-02T15:04:05Z, or remove the line", known.label+value)
			}
			*known.at = at
		}
	}
	return nil
}

// keyFile is the parsed content of a key file.
type keyFile struct {
	keyTimes
	pair *keyPair
	info fs.FileInfo
}

// readKeyFile reads the key at path, either both halves or only the public one. It
// returns fs.ErrNotExist if there is no file. If the file contains no times, its
// modification time is the time of creation.
func readKeyFile(path, hint string) (*keyFile, error) {
	block, f, err := readKeyPEM(path, hint)
	if err != nil {
		return nil, err
	}
	if f.created.IsZero() {
		f.created = f.info.ModTime().UTC()
	}
	if strings.HasSuffix(path, publicSuffix) {
		f.pair, err = parsePublicKey(path, hint, block)
	} else {
		f.pair, err = parsePrivateKey(path, hint, block)
	}
	return f, err
}

func parsePrivateKey(path, hint string, block *pem.Block) (*keyPair, error) {
	if block.Type != pemType {
		return nil, pemError(path, hint, pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing key %s is not a PKCS#8 key; %s", path, hint)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("signing key %s is a %T, not an Ed25519 key; %s", path, parsed, hint)
	}
	return newKeyPair(key)
}

func parsePublicKey(path, hint string, block *pem.Block) (*keyPair, error) {
	if block.Type != publicPEMType {
		return nil, pemError(path, hint, publicPEMType)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing key %s is not a PKIX key; %s", path, hint)
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("signing key %s is a %T, not an Ed25519 key; %s", path, parsed, hint)
	}
	return newPublicKeyPair(key)
}

func pemError(path, hint, kind string) error {
	return fmt.Errorf("signing key %s is not one PEM block of type %q; %s", path, kind, hint)
}

// readKeyPEM reads the only PEM block of a file and the lines before it.
func readKeyPEM(path, hint string) (*pem.Block, *keyFile, error) {
	content, info, err := readOwnerOnly(path, hint)
	if err != nil {
		return nil, nil, err
	}
	if len(content) == 0 {
		return nil, nil, fmt.Errorf("signing key %s is empty; %s", path, hint)
	}
	block, rest := pem.Decode(content)
	if block == nil || strings.TrimSpace(string(rest)) != "" {
		return nil, nil, pemError(path, hint, pemType)
	}
	f := &keyFile{info: info}
	if err := f.parseLines(string(content)); err != nil {
		return nil, nil, fmt.Errorf("signing key %s: %w", path, err)
	}
	return block, f, nil
}

// readOwnerOnly reads a small file of the data directory that only its owner can
// access.
func readOwnerOnly(path, hint string) ([]byte, fs.FileInfo, error) {
	f, err := datadir.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, nil, fmt.Errorf("signing key: %w", err)
	}
	defer func() { _ = f.Close() }()
	opened, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("signing key: %w", err)
	case opened.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows": // Windows has no such bits
		return nil, nil, fmt.Errorf("signing key %s may be used by others (mode %04o); run: chmod 600 %s", path, opened.Mode().Perm(), path)
	case opened.Size() > maxKeyBytes:
		return nil, nil, fmt.Errorf("signing key %s is %d bytes long, more than any key; %s", path, opened.Size(), hint)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKeyBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("read signing key %s: %w", path, err)
	}
	return content, opened, nil
}

// keyFiles maps the relative paths of key files in a data directory to their
// content.
type keyFiles map[string]*keyFile

// maxReads bounds how often the directory is read again because it changed during
// the read. A rotation takes far longer than a read.
const maxReads = 20

// readKeyFiles reads the keys of dir, or returns fs.ErrNotExist if there is no
// current key. Files in known that did not change are not read again.
func readKeyFiles(dir string, known keyFiles) (files keyFiles, err error) {
	for range maxReads {
		var changed bool
		if files, changed, err = readKeyFilesOnce(dir, known); !changed {
			return files, err
		}
		known = files
	}
	return nil, cmp.Or(err, fmt.Errorf("the keys in %s change while they are read; start again", dir))
}

// readKeyFilesOnce is one attempt of readKeyFiles. changed reports that the directory changed
// during the read, so that files and err do not count.
func readKeyFilesOnce(dir string, known keyFiles) (files keyFiles, changed bool, err error) {
	files = keyFiles{}
	// Read the current key first: if it is retired after that, it is found again
	// below.
	if err := files.readFile(dir, File, known); err != nil {
		linked := errors.Is(err, datadir.ErrLinked)
		if linked {
			removeSecondNames(dir)
		}
		return nil, linked || errors.Is(err, datadir.ErrReplaced), err
	}
	names, err := retiredNames(filepath.Join(dir, retiredDir))
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		if err := files.readFile(dir, filepath.Join(retiredDir, name), known); err != nil {
			return files, errors.Is(err, datadir.ErrReplaced) || errors.Is(err, fs.ErrNotExist), err
		}
	}
	now, err := os.Lstat(filepath.Join(dir, File))
	return files, err == nil && !isUnchanged(now, files[File].info), nil
}

// readFile adds one file to the set.
func (files keyFiles) readFile(dir, name string, known keyFiles) error {
	path := filepath.Join(dir, name)
	if f := known[name]; f != nil {
		if info, err := os.Lstat(path); err == nil && isUnchanged(info, f.info) {
			files[name] = f
			return nil
		}
	}
	hint := recreateHint
	if name != File {
		hint = retiredHint
	}
	f, err := readKeyFile(path, hint)
	if err != nil {
		return err
	}
	if id := keyIDOfFile(name); name != File && f.pair.id != id {
		return fmt.Errorf("signing key %s contains the key %s instead of the one in its name; %s", path, f.pair.id, hint)
	}
	if name != File && f.retired.IsZero() {
		f.retired = f.info.ModTime().UTC()
	}
	if name == File {
		f.retired = time.Time{} // a retired key was restored as the current one
	}
	files[name] = f
	return nil
}

// isUnchanged reports whether identity, time, size and mode of a file are the
// same.
func isUnchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// isSame reports whether both sets have the same unchanged files.
func (files keyFiles) isSame(others keyFiles) bool {
	if len(files) != len(others) {
		return false
	}
	for name, f := range files {
		if others[name] != f {
			return false
		}
	}
	return true
}

// currentRevoked returns when the current key was revoked, normally the zero time.
// If a revocation was interrupted, the current key may be revoked; it stays in
// use, because the router needs a key.
func (files keyFiles) currentRevoked() time.Time {
	current := files[File]
	if public := files[retiredPath(current.pair.id, publicSuffix)]; public != nil && !public.revoked.IsZero() {
		return public.revoked
	}
	return current.revoked
}

// keys returns the keys of the files. If several files contain the same key,
// the current key file takes precedence, even if an interrupted rotation left
// copies elsewhere; then files with a private half.
func (files keyFiles) keys() keyList {
	best := map[string]*signingKey{}
	for _, suffix := range []string{privateSuffix, publicSuffix} {
		for name, f := range files {
			if name != File && strings.HasSuffix(name, suffix) {
				best[f.pair.id] = &signingKey{keyPair: f.pair, created: f.created, retired: f.retired, revoked: f.revoked}
			}
		}
	}
	current := files[File]
	best[current.pair.id] = &signingKey{keyPair: current.pair, created: current.created, revoked: files.currentRevoked()}
	keys := make(keyList, 0, len(best))
	for _, k := range best {
		keys = append(keys, k)
	}
	keys.sortByAge()
	return keys
}
