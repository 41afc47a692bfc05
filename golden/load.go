package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/filekind"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// cassetteSuffix marks cassettes, which a directory may contain next to cases.
const cassetteSuffix = ".cassette.jsonl"

// caseFormats returns the reader of each file name extension.
func caseFormats() map[string]func(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	return map[string]func(string, []byte, *DeclaredNames) ([]Case, error){
		".yaml":  ReadYAML,
		".yml":   ReadYAML,
		".csv":   ReadCSV,
		".jsonl": ReadJSONL,
		".tsv":   ReadTSV,
	}
}

// CaseLoader reads cases.
type CaseLoader struct {
	// Names are the names that cases may use. If it is nil, cases may use any
	// agent, intent and domain.
	Names *DeclaredNames
	// Skipped reports a file that is not a case file and the reason. It may be
	// nil.
	Skipped func(file, why string)
}

// LoadCases reads cases with a CaseLoader that does not report skipped files.
func LoadCases(paths []string, names *DeclaredNames) ([]Case, error) {
	return CaseLoader{Names: names}.Load(paths)
}

// Load reads the cases of files and of all case files in directories, in the
// order of the paths and, within a directory, of the file names. A file that is
// listed twice is read once. Symbolic links are followed. In directories,
// hidden files and files with other extensions are skipped, and files whose
// content is of another kind are reported and skipped. If files contain errors,
// the error is strictyaml.Errors with line and column of each.
func (l CaseLoader) Load(paths []string) ([]Case, error) {
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
			if visitPath(taken, file) {
				continue
			}
			read, err := l.loadFile(file, file != path)
			mistakes, ok := errors.AsType[strictyaml.Errors](err)
			if err != nil && !ok {
				return nil, err
			}
			cases, wrong = append(cases, read...), append(wrong, mistakes...)
		}
	}
	if len(cases) == 0 && len(wrong) == 0 && len(paths) > 0 {
		wrong = append(wrong, noCaseFile(paths[0]))
	}
	if wrong = append(wrong, duplicateIDs(cases)...); len(wrong) > 0 {
		return nil, wrong
	}
	return cases, nil
}

// visitPath records a path, and reports whether it was visited before under any
// name.
func visitPath(taken map[string]bool, path string) bool {
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

// formatOf returns the reader for the extension of the file name, or nil.
func formatOf(file string) func(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	return caseFormats()[strings.ToLower(filepath.Ext(file))]
}

// caseFiles returns the path itself, or the case files below it if it is a
// directory.
func caseFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load cases: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	files, err := walkCaseFiles(path, map[string]bool{})
	if err != nil {
		return nil, fmt.Errorf("load cases: %w", err)
	}
	if len(files) == 0 {
		return nil, strictyaml.Errors{noCaseFile(path)}
	}
	return files, nil
}

func noCaseFile(dir string) strictyaml.Error {
	return strictyaml.Error{File: dir, Detail: "holds no file of cases: write one that ends in .yaml, .csv, .jsonl or .tsv"}
}

// walkCaseFiles lists the case files below a directory, following links.
// visited breaks cycles of links.
func walkCaseFiles(dir string, visited map[string]bool) ([]string, error) {
	if visitPath(visited, dir) {
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
		isCases := formatOf(name) != nil && !strings.HasSuffix(strings.ToLower(name), cassetteSuffix)
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(name)
			if err != nil && isCases {
				return nil, err // a broken link to cases must not be ignored
			}
			isDir = err == nil && info.IsDir()
		}
		switch {
		case isDir:
			below, err := walkCaseFiles(name, visited)
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

// loadFile reads a file. If it was found in a directory, it may be of another
// kind.
func (l CaseLoader) loadFile(file string, found bool) ([]Case, error) {
	read := formatOf(file)
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
	if why := otherKind(file, data); why != "" && found {
		if l.Skipped != nil {
			l.Skipped(file, why)
		}
		return nil, nil
	}
	cases, err := read(file, data, l.Names)
	return cases, filekind.Explain(err, filekind.Cases, file, data)
}

// duplicateIDs reports ids that occur twice, because a baseline identifies a
// case by its id.
func duplicateIDs(cases []Case) strictyaml.Errors {
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

// Filter selects cases. The zero value selects all.
type Filter struct {
	Splits []string // any of them; none = all
	Tags   []string // all of them
	IDs    []string // any of them; none = all
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

// ListFiles returns the files that LoadCases reads for the paths, with
// duplicates. A run must not overwrite them.
func ListFiles(paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		files, err := caseFiles(path)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}
