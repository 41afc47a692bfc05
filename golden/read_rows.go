package golden

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// rows collects the cases of a file with one a line, and its mistakes.
type rows struct {
	file  string
	names *DeclaredNames
	cases []Case
	wrong strictyaml.Errors
	more  int // mistakes that are not told
}

func (r *rows) mistake(line, column int, format string, args ...any) {
	if len(r.wrong) == strictyaml.MaxErrors {
		r.more++
		return
	}
	r.wrong = append(r.wrong, strictyaml.Error{File: r.file, Line: line, Column: column, Detail: fmt.Sprintf(format, args...)})
}

// add checks a case and keeps it. column says where a part of it stands.
func (r *rows) add(c Case, line int, column func(steps ...any) int) {
	c.File, c.Line = r.file, line
	checker{r.names, func(detail string, steps ...any) {
		r.mistake(line, column(steps...), "%s", detail)
	}}.check(&c)
	r.cases = append(r.cases, c)
}

func (r *rows) result() ([]Case, error) {
	if len(r.wrong) == 0 && len(r.cases) == 0 {
		r.mistake(1, 1, "has no cases")
	}
	if r.more > 0 {
		r.wrong = append(r.wrong, strictyaml.Error{File: r.file, Detail: fmt.Sprintf("… and %d more", r.more)})
	}
	if len(r.wrong) > 0 {
		return nil, r.wrong
	}
	nameRows(r.file, r.cases)
	return r.cases, nil
}

// nameRows gives the cases without an id one that outlives a new line above
// them: the file with the directory it is in, as far as its path names one, and
// a hash of the input, numbered where an input comes again.
func nameRows(file string, cases []Case) {
	stem := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if dir := filepath.Base(filepath.Dir(file)); dir != "." && dir != ".." && dir != string(filepath.Separator) {
		stem = dir + "-" + stem
	}
	stem = strings.Join(strings.Fields(stem), "-")
	seen := map[string]int{}
	for i := range cases {
		c := &cases[i]
		if c.ID != unnamed {
			continue
		}
		sum := sha256.Sum256([]byte(c.Input))
		id := stem + "-" + hex.EncodeToString(sum[:4])
		if seen[id]++; seen[id] > 1 {
			id = fmt.Sprintf("%s-%d", id, seen[id])
		}
		c.ID = id
	}
}

// unnamed stands for an id that is still to be made.
const unnamed = "-"

// ReadJSONL reads one case a line, with the members of the YAML format. Empty
// lines are passed over.
func ReadJSONL(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	r := rows{file: file, names: names}
	for i, line := range textLines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var c Case
		if err := strictjson.Unmarshal(line, &c); err != nil {
			column := 1
			if e, ok := errors.AsType[*strictjson.Error](err); ok {
				column += utf8.RuneCount(line[:min(int(e.Offset), len(line))])
			}
			r.mistake(i+1, column, "%s%s", err, nearestMember(err))
			continue
		}
		r.add(c, i+1, func(...any) int { return 1 })
	}
	return r.result()
}

// nearestMember adds to an unknown member the one that was probably meant.
func nearestMember(err error) string {
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok || !strings.HasPrefix(e.Detail, "unknown member ") || strings.Contains(e.Detail, "did you mean") {
		return ""
	}
	name := e.Pointer[strings.LastIndexByte(e.Pointer, '/')+1:]
	members := []string{"id", "input", "history", "expect", "alternates", "split", "tags", "llm", "outcome", "agents", "intent", "domains", "reason", "role", "content"}
	if near := strictyaml.Nearest(name, members); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// ReadTSV reads text<TAB>intent<TAB>domain, without a header and without
// quotes. A domain that is empty is not checked. Empty lines are passed over.
func ReadTSV(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	r := rows{file: file, names: names}
	for i, line := range textLines(data) {
		text := string(line)
		if strings.TrimSpace(text) == "" {
			continue
		}
		fields := strings.Split(text, "\t")
		if n := len(fields); n != 3 {
			column := min(n, 3)
			missing := []string{"", "intent", "domain", ""}[column]
			if n < 3 {
				r.mistake(i+1, utf8.RuneCount(line)+1, "column %d (%s) is missing: a line is text<TAB>intent<TAB>domain; end it with a tab where there is no domain to check", n+1, missing)
			} else {
				r.mistake(i+1, columnOf(fields, 3), "has %d columns: a line is text<TAB>intent<TAB>domain, without further tabs", n)
			}
			continue
		}
		c := Case{ID: unnamed, Input: fields[0], Expect: Expect{Intent: fields[1]}}
		if fields[1] == "" {
			r.mistake(i+1, columnOf(fields, 1), "column 2 (intent) is empty: name an intent of the registry, or unknown")
			continue
		}
		if fields[2] != "" {
			c.Expect.Domains = []string{fields[2]}
		}
		r.add(c, i+1, func(steps ...any) int {
			switch {
			case len(steps) > 1 && steps[1] == "intent":
				return columnOf(fields, 1)
			case len(steps) > 1 && steps[1] == "domains":
				return columnOf(fields, 2)
			}
			return 1
		})
	}
	return r.result()
}

// columnOf is where the nth field (from 0) of a line with tabs begins.
func columnOf(fields []string, nth int) int {
	column := 1
	for _, f := range fields[:nth] {
		column += utf8.RuneCountInString(f) + 1
	}
	return column
}

// csvColumns are the columns a CSV file may have; the first two it must have.
func csvColumns() []string { return []string{"input", "expected_agent", "id", "split", "tags"} }

// ReadCSV reads the columns input and expected_agent under a header that names
// them (RFC 4180), and id, split and tags where there are such. Several agents,
// or tags, are separated by ";"; a request without an expected agent is one that
// nobody may serve.
func ReadCSV(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	r := rows{file: file, names: names}
	reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	reader.FieldsPerRecord = -1 // told in our words, with the place
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		r.mistake(1, 1, "is empty: the first line must be the header input,expected_agent")
		return r.result()
	}
	if err != nil {
		r.csvTrouble(err)
		return r.result()
	}
	at, ok := r.csvHeader(header, reader)
	for ok {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.csvTrouble(err)
			break // what follows an open quote is anything
		}
		r.csvRow(fields, at, len(header), reader)
	}
	return r.result()
}

// csvHeader returns where each column is.
func (r *rows) csvHeader(header []string, reader *csv.Reader) (map[string]int, bool) {
	at := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		line, column := reader.FieldPos(i)
		if !slices.Contains(csvColumns(), name) {
			detail := fmt.Sprintf("unknown column %q; known here: %s", shown(name), strings.Join(csvColumns(), ", "))
			if near := strictyaml.Nearest(name, csvColumns()); near != "" {
				detail = fmt.Sprintf("unknown column %q; did you mean %q?", shown(name), near)
			}
			r.mistake(line, column, "%s", detail)
			continue
		}
		if _, twice := at[name]; twice {
			r.mistake(line, column, "column %q is there twice", name)
		}
		at[name] = i
	}
	for _, name := range csvColumns()[:2] {
		if _, ok := at[name]; !ok && len(r.wrong) == 0 {
			r.mistake(1, 1, "column %q is missing: the first line must be the header input,expected_agent", name)
		}
	}
	return at, len(r.wrong) == 0
}

func (r *rows) csvRow(fields []string, at map[string]int, columns int, reader *csv.Reader) {
	line, _ := reader.FieldPos(0)
	if len(fields) != columns {
		r.mistake(line, 1, "has %d columns, the header has %d: a text with a comma in it stands in double quotes", len(fields), columns)
		return
	}
	field := func(name string) string {
		if i, ok := at[name]; ok {
			return fields[i]
		}
		return ""
	}
	c := Case{
		ID:    cmp.Or(field("id"), unnamed),
		Input: field("input"),
		Split: field("split"),
		Tags:  list(field("tags")),
	}
	if agents := list(field("expected_agent")); len(agents) > 0 {
		c.Expect = Expect{Outcome: Dispatch, Agents: agents}
	} else {
		c.Expect = Expect{Outcome: AnyFallback}
	}
	r.add(c, line, func(steps ...any) int {
		name, _ := steps[0].(string)
		if name == "expect" {
			name = "expected_agent"
		}
		_, column := reader.FieldPos(at[name])
		return column
	})
}

func (r *rows) csvTrouble(err error) {
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		r.mistake(e.Line, e.Column, "is not CSV: %v", e.Err)
		return
	}
	r.mistake(1, 1, "is not CSV: %v", err)
}

// list splits at semicolons.
func list(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// textLines are the lines of a file without their ends.
func textLines(data []byte) [][]byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	lines := bytes.Split(data, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimSuffix(lines[i], []byte("\r"))
	}
	return lines
}
