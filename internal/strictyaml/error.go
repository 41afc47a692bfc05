package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxErrors is how many mistakes are told at once; more are counted only.
const MaxErrors = 20

// maxKept bounds what is remembered of a file that is all mistakes.
const maxKept = 1000

// Error is one mistake and its place. Line and Column count from 1; they are 0
// where the mistake is the file as a whole.
type Error struct {
	File         string
	Line, Column int
	Detail       string
}

// Error renders "file:line:column: detail".
func (e Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(e.Detail)
	return b.String()
}

// Errors are the mistakes of one file in the order of their places: at most
// MaxErrors, and then one without a place that says how many there are besides.
type Errors []Error

// Error renders one mistake a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// errorList collects the mistakes of one file.
type errorList struct {
	file  string
	kept  Errors
	count int
}

func (f *errorList) addError(line, column int, format string, args ...any) {
	f.count++
	if len(f.kept) < maxKept {
		f.kept = append(f.kept, Error{File: f.file, Line: line, Column: column, Detail: fmt.Sprintf(format, args...)})
	}
}

// sorted returns nil or Errors.
func (f *errorList) sorted() error {
	if f.count == 0 {
		return nil
	}
	list := slices.Clone(f.kept)
	slices.SortStableFunc(list, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if len(list) > MaxErrors {
		list = append(list[:MaxErrors], Error{File: f.file, Detail: fmt.Sprintf("… and %d more", f.count-MaxErrors)})
	}
	return list
}
