package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the prefix of the import paths of this module.
const module = "github.com/caprouter/caprouter"

// file is one parsed Go file of the module.
type file struct {
	path  string // from the root of the module, with slashes: internal/run/group.go
	pkg   string // its directory: internal/run
	test  bool   // ends in _test.go
	lines int
	ast   *ast.File
	fset  *token.FileSet // shared by all files of the module
}

// position returns the position of a node for a message.
func (f *file) position(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// imports yields the paths that the file imports, with their positions.
func (f *file) imports(yield func(path string, spec *ast.ImportSpec) bool) {
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !yield(p, spec) {
			return
		}
	}
}

// localName returns the name of an imported package in the file, or "" if the file does
// not import it.
func (f *file) localName(importPath string) string {
	for p, spec := range f.imports {
		switch {
		case p != importPath:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return path.Base(p)
		}
	}
	return ""
}

// selections yields every pkg.Name in the file, for one imported package.
func (f *file) selections(importPath string) func(yield func(name string, at ast.Node) bool) {
	return func(yield func(string, ast.Node) bool) {
		local := f.localName(importPath)
		if local == "" {
			return
		}
		for n := range ast.Preorder(f.ast) {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && !yield(sel.Sel.Name, sel) {
				return
			}
		}
	}
}

func parseFile(fset *token.FileSet, name string, src []byte) (*file, error) {
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{
		path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(src, []byte("\n")), ast: tree, fset: fset,
	}, nil
}

// packages returns the directories with Go files, sorted.
func packages(files []*file) []string {
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.pkg] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// readModule parses every Go file of the module around this package, except those of
// other modules below it, of testdata and of hidden directories.
func readModule(t *testing.T) []*file {
	t.Helper()
	root := moduleRoot(t)
	fset := token.NewFileSet()
	var files []*file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && isSkipped(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parseFile(fset, filepath.ToSlash(rel), src)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatalf("read the module: %v", err)
	}
	return files
}

func isSkipped(dir, base string) bool {
	if base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above this package")
		}
		dir = parent
	}
}

// parseSources parses the sources of a test, by path.
func parseSources(t *testing.T, sources map[string]string) []*file {
	t.Helper()
	fset := token.NewFileSet()
	var files []*file
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f, err := parseFile(fset, name, []byte(sources[name]))
		if err != nil {
			t.Fatalf("planted %s: %v", name, err)
		}
		files = append(files, f)
	}
	return files
}
