package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ReplicaFile is the name of the file with the name of the replica that uses the
// directory, in one line.
const ReplicaFile = "replica"

// MainReplica is the name of the only process of an embedded store, and of a directory
// that was used before there were replicas.
const MainReplica = "main"

// validReplica matches names of replicas, which are parts of keys and subjects.
var validReplica = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Replica returns the name of the replica that uses the directory with a shared store.
// If there is none it chooses one: MainReplica if the directory was used before, else a
// random one. The caller has locked the directory.
func Replica(dir string, used bool) (string, error) {
	path := filepath.Join(dir, ReplicaFile)
	name, err := readReplica(path)
	if errors.Is(err, fs.ErrNotExist) {
		name = MainReplica
		if !used {
			name = "r-" + strings.ToLower(rand.Text()[:8])
		}
		return name, WriteFile(path, path+".tmp", []byte(name+"\n"))
	}
	return name, err
}

// ReadReplica returns the name of the replica that uses the directory, MainReplica if it
// contains none. It writes nothing.
func ReadReplica(dir string) (string, error) {
	name, err := readReplica(filepath.Join(dir, ReplicaFile))
	if errors.Is(err, fs.ErrNotExist) {
		return MainReplica, nil
	}
	return name, err
}

func readReplica(path string) (string, error) {
	file, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFormatBytes))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	name := strings.TrimSpace(string(text))
	if !validReplica.MatchString(name) {
		return "", fmt.Errorf("%s contains %.40q: write a name of up to 32 lower-case letters, digits and hyphens, which no other replica has", path, name)
	}
	return name, nil
}
