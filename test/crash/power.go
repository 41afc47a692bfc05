package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/test/internal/process"
)

// A kill loses nothing that was written, because the system keeps it. A power failure
// also loses what was not synced. It is simulated in two steps: the storage engine of
// a patched router records the size of a file whenever it syncs it, and after a kill
// the files are cut to these sizes. Only files of messages are cut: the engine appends
// to them, and rebuilds all others.

const enginePackage = "github.com/nats-io/nats-server/v2/server"

// syncRecorder patches the storage engine. The records of DIR/data are in DIR/data.synced.
func syncRecorder() []process.Patch {
	const flushed = "\t// Check if we are in sync always mode.\n\tif mb.fs.syncAlways.Load() {\n"
	return []process.Patch{
		{Package: enginePackage, File: "filestore.go", Old: flushed, New: flushed + "\t\trecordSynced(mb.mfn, wp)\n"},
		{Package: enginePackage, File: "recordsynced.go", New: `package server

import (
	"fmt"
	"os"
	"strings"
)

func recordSynced(name string, size int64) {
	dataDir, _, _ := strings.Cut(name, "/store/jetstream/")
	f, err := os.OpenFile(dataDir+".synced", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(f, "%d %s\n", size, name)
	f.Close()
}
`},
	}
}

// failPower cuts the files of messages to the size that was synced last.
func failPower(dataDir string) error {
	synced, err := readSyncedSizes(dataDir + ".synced")
	if err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(dataDir, "store", "jetstream"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was killed before it made the directory
		}
		if err != nil || filepath.Ext(path) != ".blk" {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Size() <= synced[path] {
			return err
		}
		return os.Truncate(path, synced[path])
	})
}

func readSyncedSizes(path string) (map[string]int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sizes := map[string]int64{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var size int64
		text, name, _ := strings.Cut(lines.Text(), " ")
		if _, err := fmt.Sscan(text, &size); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		sizes[name] = size
	}
	return sizes, lines.Err()
}
