package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// Limits of a file, in lines.
const (
	maxLines     = 600
	maxMainLines = 60 // of cmd/*/main.go
)

// checkLength finds files that are too long for a single topic.
func checkLength(files []*file) []string {
	var bad []string
	for _, f := range files {
		switch {
		case ast.IsGenerated(f.ast):
		case strings.HasPrefix(f.path, "cmd/") && path.Base(f.path) == "main.go" && f.lines > maxMainLines:
			bad = append(bad, fmt.Sprintf("%s has %d lines: main parses flags and calls internal/app, in at most %d", f.path, f.lines, maxMainLines))
		case f.lines > maxLines:
			bad = append(bad, fmt.Sprintf("%s has %d lines, more than %d: split it by concern", f.path, f.lines, maxLines))
		}
	}
	return bad
}

// checkComments finds packages without a package comment, or with several, and
// comments that do not begin as godoc expects.
func checkComments(files []*file) []string {
	var bad []string
	for _, pkg := range packages(files) {
		var commented []string
		code := false
		for _, f := range files {
			if f.pkg != pkg || f.test {
				continue
			}
			code = true
			if f.ast.Doc == nil {
				continue
			}
			commented = append(commented, f.path)
			want := "Package " + f.ast.Name.Name + " "
			if f.ast.Name.Name == "main" {
				want = "Command " + path.Base(pkg) + " "
			}
			if !strings.HasPrefix(f.ast.Doc.Text(), want) {
				bad = append(bad, fmt.Sprintf("%s: the package comment must begin %q", f.path, want))
			}
		}
		switch {
		case !code:
			bad = append(bad, fmt.Sprintf("package %s contains only tests: add a doc.go that describes what they check", pkg))
		case len(commented) == 0:
			bad = append(bad, fmt.Sprintf("package %s has no package comment: describe its responsibility and its limits", pkg))
		case len(commented) > 1:
			bad = append(bad, fmt.Sprintf("package %s has package comments in %s: keep one", pkg, strings.Join(commented, " and ")))
		}
	}
	return bad
}
