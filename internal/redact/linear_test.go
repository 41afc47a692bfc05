package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Masking must take linear time for any text. Tests do not measure time, so this one counts steps:
// it builds the package with a counter in each loop and before each library search, and runs
// families of hostile texts. A text that is four times as long must not take much more than four
// times as many steps, and the steps per byte are bounded.

// maxSteps bounds the loop iterations per byte of all detectors together.
const maxSteps = 400

// family describes texts: a head, a repeated unit and a repeated tail.
type family struct{ Head, Unit, Tail string }

func (f family) String() string { return fmt.Sprintf("%q + %q… + %q…", f.Head, f.Unit, f.Tail) }

// families are single hostile units, each after names of secrets, and pairs of delimiters.
func families() []family {
	var all []family
	for _, unit := range hostile {
		all = append(all, family{Unit: unit}, family{Head: "password=", Unit: unit}, family{Head: `{"api_key": "`, Unit: unit})
	}
	openers := []string{
		"password", "password=", "password: ", `password="`, "password is", "token=", " --password ", " -u a:", "<password>", "Cookie: a=", "Authorization: Bearer ",
		"eyJ-", "glpat-", "sk-", "SG.", "hvs.", "ya29.", "AKIA", "-----BEGIN PRIVATE KEY", "://a:", "a@b.", `"a"@`, "[A", "[EMAIL_", "1:", "1.1.", "4111 ", "+1 ", "(1)", "DE89", "\u200b", "é",
	}
	tails := []string{"a", "A", "1", "=", ":", " ", "\\", `"`, ".a", "aaaaaaaaaaaaaaaa.", ",a", ";a ", "&", "@", "-", "_", "(", "[", ">", "\t", "é", "\u200b", "密"}
	for _, o := range openers {
		for _, tail := range tails {
			all = append(all, family{Unit: o + tail}, family{Head: o, Unit: tail}, family{Unit: o, Tail: "." + tail}, family{Unit: o, Tail: tail + o})
		}
	}
	return all
}

func TestMaskingIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the package a second time")
	}
	all := families()
	const small, large = 1 << 12, 1 << 14
	for i, got := range countSteps(t, all, small, large) {
		short, long := got[0], got[1]
		// Small counts are ignored, because the constant part dominates.
		if long > 5*short && long > 100*large {
			t.Errorf("%s: got %d steps for %d bytes, %d for %d", all[i], short, small, long, large)
		}
		if long > maxSteps*large {
			t.Errorf("%s: got %d steps for each byte, want at most %d", all[i], long/large, maxSteps)
		}
	}
}

// countSteps returns the iterations for texts of the families, by size.
func countSteps(t *testing.T, all []family, sizes ...int) [][]int {
	t.Helper()
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("counting steps builds the package: no go command on this system")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{
		filepath.Join(here, "steps.go"):         written(t, dir, "steps.go", []byte(stepsSource)),
		filepath.Join(here, "steps", "main.go"): written(t, dir, "main.go", []byte(stepsMain)),
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			replace[filepath.Join(here, name)] = written(t, dir, name, counting(t, name))
		}
	}
	overlay := written(t, dir, "overlay.json", marshalled(t, map[string]any{"Replace": replace}))
	cmd := exec.CommandContext(t.Context(), gocmd, "run", "-overlay", overlay, "./steps")
	cmd.Stdin = bytes.NewReader(marshalled(t, map[string]any{"Families": all, "Sizes": sizes}))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, &stderr)
	}
	var counts [][]int
	if err := json.Unmarshal(out, &counts); err != nil || len(counts) != len(all) {
		t.Fatalf("got %d counts of %d: %v\n%s", len(counts), len(all), err, out)
	}
	return counts
}

// counting returns a file of the package with a counter in each loop and before each search.
func counting(t *testing.T, name string) []byte {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := func(body *ast.BlockStmt) {
		step := &ast.IncDecStmt{X: ast.NewIdent("Steps"), Tok: token.INC}
		body.List = append([]ast.Stmt{step}, body.List...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			count(n.Body)
		case *ast.RangeStmt:
			count(n.Body)
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "strings" && strings.Contains(stepsSource, ") "+n.Sel.Name+"(") {
				x.Name = "counted"
			}
		}
		return true
	})
	// Some files no longer need the package.
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			for _, spec := range d.Specs {
				if path := spec.(*ast.ImportSpec).Path.Value; path == strconv.Quote("strings") {
					file.Decls = append(file.Decls, &ast.GenDecl{Tok: token.VAR, Specs: []ast.Spec{&ast.ValueSpec{
						Names:  []*ast.Ident{ast.NewIdent("_")},
						Values: []ast.Expr{&ast.SelectorExpr{X: ast.NewIdent("strings"), Sel: ast.NewIdent("Clone")}},
					}}})
				}
			}
		}
	}
	var b bytes.Buffer
	if err := format.Node(&b, fset, file); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stepsSource contains the counter and the counting searches.
const stepsSource = `package redact

import "strings"

var Steps int

var counted searches

type searches struct{}

func passed(n, of int) int {
	if n < 0 {
		Steps += of
	} else {
		Steps += n
	}
	return n
}

func (searches) Index(s, sub string) int          { return passed(strings.Index(s, sub), len(s)) }
func (searches) IndexByte(s string, b byte) int   { return passed(strings.IndexByte(s, b), len(s)) }
func (searches) LastIndexByte(s string, b byte) int {
	n := strings.LastIndexByte(s, b)
	Steps += len(s) - max(n, 0)
	return n
}
func (searches) Contains(s, sub string) bool      { return passed(strings.Index(s, sub), len(s)) >= 0 }
func (searches) ContainsAny(s, chars string) bool { return passed(strings.IndexAny(s, chars), len(s)) >= 0 }
func (searches) Trim(s, cut string) string        { t := strings.Trim(s, cut); Steps += len(s) - len(t); return t }
func (searches) TrimSpace(s string) string        { t := strings.TrimSpace(s); Steps += len(s) - len(t); return t }
func (searches) TrimLeft(s, cut string) string    { t := strings.TrimLeft(s, cut); Steps += len(s) - len(t); return t }
func (searches) TrimRight(s, cut string) string   { t := strings.TrimRight(s, cut); Steps += len(s) - len(t); return t }
func (searches) Clone(s string) string            { Steps += len(s); return s }
func (searches) ToLower(s string) string          { Steps += len(s); return strings.ToLower(s) }
`

// stepsMain masks the texts, alone and as array elements.
const stepsMain = `package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

func main() {
	var in struct {
		Families []struct{ Head, Unit, Tail string }
		Sizes    []int
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	r, err := redact.New(redact.Config{})
	if err != nil {
		panic(err)
	}
	counts := make([][]int, len(in.Families))
	for i, f := range in.Families {
		for _, size := range in.Sizes {
			text := f.Head + strings.Repeat(f.Unit, size/len(f.Unit))
			if f.Tail != "" {
				text = f.Head + strings.Repeat(f.Unit, size/2/len(f.Unit)) + strings.Repeat(f.Tail, size/2/len(f.Tail))
			}
			redact.Steps = 0
			m := r.StartMasking()
			m.RestoreText(m.MaskText(text), contract.DataClasses{"secret"})
			counts[i] = append(counts[i], redact.Steps)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(counts); err != nil {
		panic(err)
	}
}
`

func written(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func marshalled(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
