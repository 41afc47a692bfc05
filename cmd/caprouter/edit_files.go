package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// fileEdit replaces the content of a file.
type fileEdit struct {
	path          string
	before, after []byte // before is nil if the file does not exist
}

// readForEdit returns the content of a file, nil if it does not exist.
func readForEdit(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, withoutVerb(err)
}

// applyEdits changes all files or none. It fails if a file was changed since it was
// read.
func applyEdits(edits []fileEdit) error {
	for _, e := range edits {
		now, err := readForEdit(e.path)
		switch {
		case err != nil:
			return err
		case !bytes.Equal(now, e.before):
			return fmt.Errorf("%s was changed meanwhile, and nothing was written: run the command again", e.path)
		}
		if err := checkWritable(e.path); err != nil {
			return err
		}
	}
	for i, e := range edits {
		if err := writeAtomically(fileContent{e.path, e.after}); err != nil {
			return errors.Join(err, restoreFiles(edits[:i]))
		}
	}
	return nil
}

func restoreFiles(edits []fileEdit) error {
	var failed []error
	for _, e := range edits {
		if e.before == nil {
			failed = append(failed, os.Remove(e.path))
		} else {
			failed = append(failed, writeAtomically(fileContent{e.path, e.before}))
		}
	}
	return errors.Join(failed...)
}
