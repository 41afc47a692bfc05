package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FormatFile is the name of the file with the format of the data directory:
//
//	format 1
//	engine 2.15.2
//
// The format is that of everything in the directory; engine is the version of the
// storage engine that wrote store/, or missing if the store is at a URL. While the
// directory is being created, the file contains the line "creating".
const FormatFile = "FORMAT"

// CurrentFormat is the format that this program reads and writes.
const CurrentFormat = 1

// firstEngine is the version of the storage engine that wrote directories without a
// FormatFile.
const firstEngine = "2.15.2"

const maxFormatBytes = 4096

// ErrNewer is wrapped by the error for a directory that a newer program wrote.
var ErrNewer = errors.New("written by a newer version of caprouter")

// format is the content of the FormatFile. The zero value is that of a missing one.
type format struct {
	version  int
	engine   string
	creating bool
}

// knownFiles are the names by which a directory without a FormatFile is known to be a data
// directory.
func knownFiles() []string {
	return []string{"agent-signing.key", "retired-keys", "audit.head", "store"}
}

// Prepare checks the directory, which must exist, and reports whether it was in use
// before. It marks a directory without a FormatFile with the current format, because
// the files of earlier programs have the same.
//
// engine is the version of the storage engine that creates store/ in a new directory.
func Prepare(dir, engine string) (used bool, err error) {
	if err := Check(dir); err != nil {
		return false, err
	}
	f, err := readFormat(dir)
	if err != nil || f.version != 0 {
		return !f.creating, err
	}
	if used, err = hasKnownFiles(dir); err != nil {
		return false, err
	}
	f = format{version: CurrentFormat, engine: engine, creating: !used}
	if used {
		f.engine = firstEngine
	}
	return used, writeFormat(dir, f)
}

// hasKnownFiles reports whether a directory without a FormatFile is a data directory.
func hasKnownFiles(dir string) (bool, error) {
	for _, name := range knownFiles() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// Complete marks the directory as completely created, and written by this version of
// the storage engine; "" if the store is at a URL.
func Complete(dir, engine string) error {
	f, err := readFormat(dir)
	if err != nil {
		return err
	}
	want := format{version: CurrentFormat, engine: engine}
	if f == want {
		return nil
	}
	return writeFormat(dir, want)
}

// Engine returns the version of the storage engine that wrote the directory, "" if
// none has, or if it is not known.
func Engine(dir string) (string, error) {
	f, err := readFormat(dir)
	if err == nil && f.version == 0 {
		if used, err := hasKnownFiles(dir); err != nil || !used {
			return "", err
		}
		return firstEngine, nil
	}
	return f.engine, err
}

// CompareEngines compares two versions of the storage engine, as cmp.Compare does, without
// the number of the patch, which changes no format. "" is lower than any version.
func CompareEngines(a, b string) int {
	var x, y [2]int
	_, _ = fmt.Sscanf(a, "%d.%d", &x[0], &x[1]) // zero if there is none
	_, _ = fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return slices.Compare(x[:], y[:])
}

// readFormat returns the content of the FormatFile, and an error if it is not one that
// this program can use.
func readFormat(dir string) (format, error) {
	path := filepath.Join(dir, FormatFile)
	file, err := OpenFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return format{}, nil
	}
	if err != nil {
		return format{}, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFormatBytes))
	if err != nil {
		return format{}, fmt.Errorf("read %s: %w", path, err)
	}
	f := parseFormat(string(text))
	switch {
	case f.version == 0:
		return format{}, fmt.Errorf("%s does not begin with a line like %q; restore it, or a backup of the directory",
			path, "format "+strconv.Itoa(CurrentFormat))
	case f.version > CurrentFormat:
		return format{}, fmt.Errorf("%w: %s has format %d, and this version reads format %d; start the newer version, or restore the backup from before the upgrade",
			ErrNewer, dir, f.version, CurrentFormat)
	}
	return f, nil
}

// parseFormat ignores lines that it does not know: a program that depends on them has
// another format.
func parseFormat(text string) (f format) {
	for i, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
		switch {
		case i == 0 && key != "format":
			return format{}
		case key == "format":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				f.version = n
			}
		case key == "engine":
			f.engine = value
		case key == "creating":
			f.creating = true
		}
	}
	return f
}

// writeFormat replaces the FormatFile atomically. Processes that start at the same time
// may write it together, because the directory is not locked yet.
func writeFormat(dir string, f format) error {
	text := fmt.Sprintf("format %d\n", f.version)
	if f.engine != "" {
		text += "engine " + f.engine + "\n"
	}
	if f.creating {
		text += "creating\n"
	}
	temp, err := WriteTemp(dir, FormatFile+".*.tmp", []byte(text))
	if err != nil {
		return err
	}
	return Rename(temp, filepath.Join(dir, FormatFile))
}
