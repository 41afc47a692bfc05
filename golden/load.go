package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/strictyaml"
)

// cassetteSuffix marks files that a directory of cases may hold beside them.
const cassetteSuffix = ".cassette.jsonl"

// readers are the formats of cases, by the end of the file's name.
func readers() map[string]func(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	return map[string]func(string, []byte, *DeclaredNames) ([]Case, error){
		".yaml":  ReadYAML,
		".yml":   ReadYAML,
		".csv":   ReadCSV,
		".jsonl": ReadJSONL,
		".tsv":   ReadTSV,
	}
}

// LoadCases reads the cases of files and of all case files in directories, in the
// order of the paths and, within a directory, of the names; a file that is
// there twice, once. Links are followed. In directories, names that begin with a
// dot and names whose end is no format of cases are passed over. A nil names
// lets cases name any agent, intent and domain. The error is strictyaml.Errors when
// a file is at fault, every mistake with its line and column.
func LoadCases(paths []string, names *DeclaredNames) ([]Case, error) {
	var (
		cases []Case
		wrong strictyaml.Errors
	)
	taken := map[string]bool{}
	for _, path := range paths {
		files, err := caseFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if again(taken, file) {
				continue
			}
			read, err := loadFile(file, names)
			mistakes, ok := errors.AsType[strictyaml.Errors](err)
			if err != nil && !ok {
				return nil, err
			}
			cases, wrong = append(cases, read...), append(wrong, mistakes...)
		}
	}
	if wrong = append(wrong, repeatedIDs(cases)...); len(wrong) > 0 {
		return nil, wrong
	}
	return cases, nil
}

// again reports whether it was called with the path before, by whatever name.
func again(taken map[string]bool, path string) bool {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if direct, err := filepath.EvalSymlinks(path); err == nil {
		path = direct
	}
	was := taken[path]
	taken[path] = true
	return was
}

// readerOf is the format that the end of a file's name stands for; nil = none.
func readerOf(file string) func(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	return readers()[strings.ToLower(filepath.Ext(file))]
}

// caseFiles is the path itself, or the case files below the directory it is.
func caseFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load cases: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := filesBelow(path, map[string]bool{})
	if err != nil {
		return nil, fmt.Errorf("load cases: %w", err)
	}
	if len(files) == 0 {
		return nil, strictyaml.Errors{{File: path, Detail: "holds no file of cases: write one that ends in .yaml, .csv, .jsonl or .tsv"}}
	}
	return files, nil
}

// filesBelow walks the directory, links included. visited keeps links that lead
// back up from going round in circles.
func filesBelow(dir string, visited map[string]bool) ([]string, error) {
	if again(visited, dir) {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		name := filepath.Join(dir, entry.Name())
		isCases := readerOf(name) != nil && !strings.HasSuffix(strings.ToLower(name), cassetteSuffix)
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(name)
			if err != nil && isCases {
				return nil, err // cases that somebody counts on
			}
			isDir = err == nil && info.IsDir()
		}
		switch {
		case isDir:
			below, err := filesBelow(name, visited)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		case isCases:
			files = append(files, name)
		}
	}
	return files, nil
}

func loadFile(file string, names *DeclaredNames) ([]Case, error) {
	read := readerOf(file)
	if read == nil {
		return nil, strictyaml.Errors{{File: file, Detail: "is no file of cases: its name must end in .yaml, .csv, .jsonl or .tsv"}}
	}
	data, err := strictyaml.ReadFile(file)
	if err != nil {
		if _, ok := errors.AsType[strictyaml.Errors](err); ok {
			return nil, err
		}
		return nil, fmt.Errorf("load cases: %w", err)
	}
	return read(file, data, names)
}

// repeatedIDs finds ids that are there twice: a baseline finds a case by its id.
func repeatedIDs(cases []Case) strictyaml.Errors {
	first := make(map[string]*Case, len(cases))
	var found strictyaml.Errors
	for i := range cases {
		c := &cases[i]
		if other, ok := first[c.ID]; ok {
			if len(found) < strictyaml.MaxErrors {
				detail := fmt.Sprintf("the id %q is taken by the case at %s:%d: choose another", c.ID, other.File, other.Line)
				found = append(found, strictyaml.Error{File: c.File, Line: c.Line, Column: 1, Detail: detail})
			}
			continue
		}
		first[c.ID] = c
	}
	return found
}

// Filter selects cases; its zero value selects all.
type Filter struct {
	Splits []string // any of them; none = every case
	Tags   []string // all of them
	IDs    []string // any of them; none = every case
}

// FilterCases returns the cases that pass the filter, in order.
func FilterCases(cases []Case, f Filter) []Case {
	return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool {
		switch {
		case len(f.Splits) > 0 && !slices.Contains(f.Splits, c.Split),
			len(f.IDs) > 0 && !slices.Contains(f.IDs, c.ID):
			return true
		}
		return slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(c.Tags, tag) })
	})
}
