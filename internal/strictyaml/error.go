package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxErrors is how many errors are reported; further ones are only counted.
const MaxErrors = 20

// maxKept bounds the memory for errors of one file.
const maxKept = 1000

// Error is one error and its position. Line and Column count from 1; they are 0 for
// the file as a whole.
type Error struct {
	File         string
	Line, Column int
	Detail       string
}

// Error returns "file:line:column: detail".
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

// Errors are the errors of one file in the order of their positions: at most
// MaxErrors, followed by one without a position that contains the number of the rest.
type Errors []Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// errorList collects the errors of one file.
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

// sorted returns the errors in the order of the file as Errors, or nil.
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
