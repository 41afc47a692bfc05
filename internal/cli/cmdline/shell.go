package cmdline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// ProgramName returns how the user has called this program from the current directory.
func ProgramName() string { return ProgramNameIn(".", os.Args[0]) }

// ProgramNameIn returns how to call the program, which was called as called, in the
// directory dir.
func ProgramNameIn(dir, called string) string {
	switch {
	case strings.Contains(called, "go-build") && dir == ".":
		return "go run ./cmd/caprouter"
	case strings.Contains(called, "go-build") || !strings.ContainsRune(called, filepath.Separator):
		return "caprouter"
	case dir == ".": // perhaps in no directory of PATH
		return QuoteForShell(called)
	}
	path, err := filepath.Abs(called)
	if err != nil {
		return "caprouter"
	}
	return QuoteForShell(path)
}

// QuoteForShell returns a path as one word of a shell that is not taken for an option.
func QuoteForShell(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	isPlain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/", r) }
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool { return !isPlain(r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// PrintCommands prints commands, each below what it does, so that the lines are short.
func PrintCommands(out io.Writer, commands [][2]string) {
	for _, c := range commands {
		fmt.Fprintf(out, "  # %s\n  %s\n", c[1], c[0])
	}
}
