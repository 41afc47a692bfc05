package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// repairedFile contains the damage that RepairAll removed, until ForgetRepaired. It may be
// reported twice, but is not lost if the process is killed.
const repairedFile = "repaired.json"

func (f *Files) repairedPath() string {
	return filepath.Join(f.Dir, "store", damagedDir, repairedFile)
}

// Repaired returns the damage that RepairAll removed before the last ForgetRepaired, by
// stream.
func (f *Files) Repaired() (map[string][]Damage, error) {
	found := map[string][]Damage{}
	data, err := os.ReadFile(f.repairedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err == nil {
		err = strictjson.Unmarshal(data, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; move it away", f.repairedPath(), err)
	}
	return found, nil
}

func (f *Files) writeRepaired(found map[string][]Damage) error {
	data, err := strictjson.Marshal(found)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.repairedPath()), 0o700)
	}
	if err == nil {
		err = replaceFile(f.repairedPath(), data)
	}
	return err
}

// ForgetRepaired empties the list that Repaired returns.
func (f *Files) ForgetRepaired() error {
	if err := os.Remove(f.repairedPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
