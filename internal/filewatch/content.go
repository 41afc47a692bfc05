package filewatch

import (
	"crypto/sha256"
	"os"
	"time"
)

// readOutcome identifies what a read returned.
type readOutcome struct {
	checksum [sha256.Size]byte
	err      string
}

// checkLocked reads the file and reports the outcome if it is new. w.mu is held.
func (w *Watcher) checkLocked() {
	content, err := w.readStable()
	now := readOutcome{checksum: sha256.Sum256(content)}
	if err != nil {
		now = readOutcome{err: err.Error()}
		w.file = fileStat{} // because a corrected file mode does not change the stat
	}
	if w.last != nil && *w.last == now {
		return
	}
	w.last = &now
	w.cfg.OnChange(content, err)
}

// checkIfTouched is check for a file whose stat differs from that of the last
// read, or does not prove that the content is the same.
func (w *Watcher) checkIfTouched() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.file.stable || !statFile(w.cfg.Path).sameState(w.file) {
		w.checkLocked()
	}
}

// readStable reads the file, and again if it changes meanwhile: the first half of a file
// can be valid by itself.
func (w *Watcher) readStable() (content []byte, err error) {
	const attempts = 5
	for range attempts {
		w.file = statFile(w.cfg.Path)
		content, err = w.cfg.Read(w.cfg.Path)
		if statFile(w.cfg.Path).sameState(w.file) {
			break
		}
	}
	return content, err
}

// fileStat is what the file system reports about a file without reading it.
type fileStat struct {
	info os.FileInfo // nil if there is no file
	// stable means that an equal stat implies equal content. Clocks of file
	// systems tick in up to two seconds, so a file that was modified just before
	// it was read may change again without a trace.
	stable bool
}

func statFile(path string) fileStat {
	info, err := os.Stat(path)
	if err != nil {
		return fileStat{}
	}
	return fileStat{info: info, stable: time.Since(info.ModTime()) > 3*time.Second}
}

func (s fileStat) sameState(other fileStat) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime())
}
