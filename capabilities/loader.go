package capabilities

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// loader reads the file when it has changed and applies it when it is good. It
// does one thing at a time.
type loader struct {
	path     string
	optional bool // until there is a file for the first time, the registry is empty
	apply    func(*Snapshot) error

	mark    mark     // of the file when it was read last
	read    checksum // of what was in it
	err     error    // what is wrong with that
	applied checksum // of the content in force
	version string   // of the snapshot in force
	seen    bool     // the file has been there
}

// noFile is what an optional file holds that has never been there.
const noFile = "clients: {}\n"

type checksum [sha256.Size]byte

// glance looks at the file only if the system says that it has changed.
func (l *loader) glance() (*Snapshot, error) {
	if l.mark.tells && markOf(l.path).same(l.mark) {
		return nil, l.err
	}
	return l.load()
}

// load looks at the file. It returns the snapshot it has applied, or nil when
// there was nothing new, and what is wrong with the file as it is now.
func (l *loader) load() (*Snapshot, error) {
	data, err := l.readFile()
	switch {
	case err == nil:
		l.seen = true
	case l.optional && !l.seen && errors.Is(err, fs.ErrNotExist):
		data, err = []byte(noFile), nil
	}
	if err != nil {
		l.mark, l.read = mark{}, checksum{} // to mend the file's mode leaves no mark
		return nil, l.fail(fmt.Errorf("read the registry: %w", err))
	}
	sum := checksum(sha256.Sum256(data))
	switch {
	case l.version != "" && sum == l.applied:
		return nil, l.fail(nil)
	case l.err != nil && sum == l.read:
		return nil, l.err
	}
	s, err := Parse(l.path, data)
	if err != nil {
		l.read = sum
		return nil, l.fail(err)
	}
	if identityOf(s) == l.version { // other comments, other layout
		l.applied = sum
		return nil, l.fail(nil)
	}
	if err := l.apply(s); err != nil {
		// The file is not to blame, so the next look tries it again.
		l.mark, l.read = mark{}, checksum{}
		return nil, l.fail(fmt.Errorf("apply the registry %s: %w", s.Catalogue.Version, err))
	}
	l.applied, l.version = sum, identityOf(s)
	return s, l.fail(nil)
}

func identityOf(s *Snapshot) string { return s.Catalogue.Version + s.Fleet.Revision }

// fail keeps what is wrong with the file, nil for nothing, and returns it.
func (l *loader) fail(err error) error {
	l.err = err
	return err
}

// readFile reads the file, again if it changes meanwhile: the first half of a
// registry can be a registry.
func (l *loader) readFile() ([]byte, error) {
	const tries = 5
	var (
		data []byte
		err  error
	)
	for range tries {
		l.mark = markOf(l.path)
		data, err = strictyaml.ReadFile(l.path)
		if markOf(l.path).same(l.mark) {
			break
		}
	}
	return data, err
}

// mark is what the system says of a file without reading it.
type mark struct {
	info os.FileInfo // nil when there is none
	// tells says that a file with an equal mark has the same content. Clocks of
	// file systems tick in up to two seconds, so a file that changed just before
	// it was read may change again without a trace.
	tells bool
}

func markOf(path string) mark {
	info, err := os.Stat(path)
	if err != nil {
		return mark{}
	}
	return mark{info: info, tells: time.Since(info.ModTime()) > 3*time.Second}
}

func (m mark) same(other mark) bool {
	if m.info == nil || other.info == nil {
		return m.info == nil && other.info == nil
	}
	return os.SameFile(m.info, other.info) && m.info.Size() == other.info.Size() && m.info.ModTime().Equal(other.info.ModTime())
}
