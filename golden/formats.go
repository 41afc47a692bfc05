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

// rowReader collects the cases and errors of a file with one case per line.
type rowReader struct {
	file       string
	names      *DeclaredNames
	cases      []Case
	mistakes   strictyaml.Errors
	unreported int // errors beyond the limit
}

func (r *rowReader) addMistake(line, column int, format string, args ...any) {
	if len(r.mistakes) == strictyaml.MaxErrors {
		r.unreported++
		return
	}
	r.mistakes = append(r.mistakes, strictyaml.Error{File: r.file, Line: line, Column: column, Detail: fmt.Sprintf(format, args...)})
}

// addCase validates and adds a case. column returns the column of a field.
func (r *rowReader) addCase(c Case, line int, column func(steps ...any) int) {
	c.File, c.Line = r.file, line
	caseChecker{r.names, func(detail string, steps ...any) {
		r.addMistake(line, column(steps...), "%s", detail)
	}}.checkCase(&c)
	r.cases = append(r.cases, c)
}

func (r *rowReader) finish() ([]Case, error) {
	if len(r.mistakes) == 0 && len(r.cases) == 0 {
		r.addMistake(1, 1, "has no cases")
	}
	if r.unreported > 0 {
		r.mistakes = append(r.mistakes, strictyaml.Error{File: r.file, Detail: fmt.Sprintf("… and %d more", r.unreported)})
	}
	if len(r.mistakes) > 0 {
		return nil, r.mistakes
	}
	assignIDs(r.file, r.cases)
	return r.cases, nil
}

// assignIDs gives cases without an id one that does not depend on the line
// number: directory, file name, and a hash of the input, with a counter if the
// input repeats.
func assignIDs(file string, cases []Case) {
	stem := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if dir := filepath.Base(filepath.Dir(file)); dir != "." && dir != ".." && dir != string(filepath.Separator) {
		stem = dir + "-" + stem
	}
	stem = strings.Join(strings.Fields(stem), "-")
	seen := map[string]int{}
	for i := range cases {
		c := &cases[i]
		if c.ID != missingID {
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

// missingID marks a case without an id.
const missingID = "-"

// ReadJSONL reads one JSON case per line, with the members of the YAML format.
// Empty lines are skipped.
func ReadJSONL(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	r := rowReader{file: file, names: names}
	for i, line := range splitLines(data) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var c Case
		if err := strictjson.Unmarshal(line, &c); err != nil {
			column := 1
			if e, ok := errors.AsType[*strictjson.Error](err); ok {
				column += utf8.RuneCount(line[:min(int(e.Offset), len(line))])
			}
			r.addMistake(i+1, column, "%s%s", err, suggestMember(err))
			continue
		}
		r.addCase(c, i+1, func(...any) int { return 1 })
	}
	return r.finish()
}

// suggestMember suggests the member that was probably meant.
func suggestMember(err error) string {
	e, ok := errors.AsType[*strictjson.Error](err)
	if !ok || !strings.HasPrefix(e.Detail, "unknown member ") || strings.Contains(e.Detail, "did you mean") {
		return ""
	}
	name := e.Pointer[strings.LastIndexByte(e.Pointer, '/')+1:]
	members := []string{"id", "input", "history", "expect", "alternates", "split", "tags", "llm", "known_failure", "tenant", "outcome", "agents", "intent", "domains", "reason", "role", "content"}
	if near := strictyaml.Nearest(name, members); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// ReadTSV reads lines of text<TAB>intent<TAB>domain, without header and quotes.
// An empty domain is not checked. Empty lines are skipped.
func ReadTSV(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	r := rowReader{file: file, names: names}
	for i, line := range splitLines(data) {
		text := string(line)
		if strings.TrimSpace(text) == "" {
			continue
		}
		fields := strings.Split(text, "\t")
		if n := len(fields); n != 3 {
			column := min(n, 3)
			missing := []string{"", "intent", "domain", ""}[column]
			if n < 3 {
				r.addMistake(i+1, utf8.RuneCount(line)+1, "column %d (%s) is missing: a line is text<TAB>intent<TAB>domain; end it with a tab where there is no domain to check", n+1, missing)
			} else {
				r.addMistake(i+1, columnStart(fields, 3), "has %d columns: a line is text<TAB>intent<TAB>domain, without further tabs", n)
			}
			continue
		}
		c := Case{ID: missingID, Input: fields[0], Expect: Expect{Intent: fields[1]}}
		if fields[1] == "" {
			r.addMistake(i+1, columnStart(fields, 1), "column 2 (intent) is empty: name an intent of the registry, or unknown")
			continue
		}
		if fields[2] != "" {
			c.Expect.Domains = []string{fields[2]}
		}
		r.addCase(c, i+1, func(steps ...any) int {
			switch {
			case len(steps) > 1 && steps[1] == "intent":
				return columnStart(fields, 1)
			case len(steps) > 1 && steps[1] == "domains":
				return columnStart(fields, 2)
			}
			return 1
		})
	}
	return r.finish()
}

// columnStart returns the column at which the nth field (from 0) of a
// tab-separated line starts.
func columnStart(fields []string, nth int) int {
	column := 1
	for _, f := range fields[:nth] {
		column += utf8.RuneCountInString(f) + 1
	}
	return column
}

// csvColumns returns the possible columns of a CSV file. The first two are
// required.
func csvColumns() []string {
	return []string{"input", "expected_agent", "id", "split", "tags", "known_failure", "tenant"}
}

// ReadCSV reads a CSV file (RFC 4180) with a header. The columns input and
// expected_agent are required; id, split, tags, known_failure and tenant are optional. Several
// agents or tags are separated by ";". If expected_agent is empty, a fallback is
// expected.
func ReadCSV(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	r := rowReader{file: file, names: names}
	reader := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	reader.FieldsPerRecord = -1 // checked by csvRow, with a better error
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		r.addMistake(1, 1, "is empty: the first line must be the header input,expected_agent")
		return r.finish()
	}
	if err != nil {
		r.addCSVError(err)
		return r.finish()
	}
	at, ok := r.csvHeader(header, reader)
	for ok {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.addCSVError(err)
			break // after an open quote nothing can be parsed
		}
		r.csvRow(fields, at, len(header), reader)
	}
	return r.finish()
}

// csvHeader returns the index of each column.
func (r *rowReader) csvHeader(header []string, reader *csv.Reader) (map[string]int, bool) {
	at := map[string]int{}
	for i, name := range header {
		name = strings.TrimSpace(name)
		line, column := reader.FieldPos(i)
		if !slices.Contains(csvColumns(), name) {
			detail := fmt.Sprintf("unknown column %q; known here: %s", truncateValue(name), strings.Join(csvColumns(), ", "))
			if near := strictyaml.Nearest(name, csvColumns()); near != "" {
				detail = fmt.Sprintf("unknown column %q; did you mean %q?", truncateValue(name), near)
			}
			r.addMistake(line, column, "%s", detail)
			continue
		}
		if _, twice := at[name]; twice {
			r.addMistake(line, column, "column %q occurs twice", name)
		}
		at[name] = i
	}
	for _, name := range csvColumns()[:2] {
		if _, ok := at[name]; !ok && len(r.mistakes) == 0 {
			r.addMistake(1, 1, "column %q is missing: the first line must be the header input,expected_agent", name)
		}
	}
	return at, len(r.mistakes) == 0
}

func (r *rowReader) csvRow(fields []string, at map[string]int, columns int, reader *csv.Reader) {
	line, _ := reader.FieldPos(0)
	if len(fields) != columns {
		r.addMistake(line, 1, "has %d columns, the header has %d: put a text with a comma in double quotes", len(fields), columns)
		return
	}
	field := func(name string) string {
		if i, ok := at[name]; ok {
			return fields[i]
		}
		return ""
	}
	c := Case{
		ID:    cmp.Or(field("id"), missingID),
		Input: field("input"),
		Split: field("split"),
		Tags:  splitList(field("tags")),

		KnownFailure: field("known_failure"),
		Tenant:       field("tenant"),
	}
	if agents := splitList(field("expected_agent")); len(agents) > 0 {
		c.Expect = Expect{Outcome: Dispatch, Agents: agents}
	} else {
		c.Expect = Expect{Outcome: AnyFallback}
	}
	r.addCase(c, line, func(steps ...any) int {
		name, _ := steps[0].(string)
		if name == "expect" {
			name = "expected_agent"
		}
		_, column := reader.FieldPos(at[name])
		return column
	})
}

func (r *rowReader) addCSVError(err error) {
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		r.addMistake(e.Line, e.Column, "is not CSV: %v", e.Err)
		return
	}
	r.addMistake(1, 1, "is not CSV: %v", err)
}

// splitList splits a list at semicolons.
func splitList(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// splitLines splits a file into lines without line ends.
func splitLines(data []byte) [][]byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	lines := bytes.Split(data, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimSuffix(lines[i], []byte("\r"))
	}
	return lines
}

// casesFile is the structure of a YAML file of cases.
type casesFile struct {
	Cases []Case `yaml:"cases"`
}

func repliesOption() strictyaml.Option { return strictyaml.ScalarOrList[ScriptedReplies]() }

// Schema returns the JSON Schema of YAML files of cases.
func Schema() (map[string]any, error) {
	shape, err := newShape()
	if err != nil {
		return nil, err
	}
	return strictyaml.Schema("caprouter golden cases", casesFile{}, shape, repliesOption()), nil
}

// ReadYAML reads `cases: […]`, the only format with all features.
func ReadYAML(file string, data []byte, names *DeclaredNames) ([]Case, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var content casesFile
	// Errors of Decode are reported together with those of the checks.
	_ = doc.Decode(&content, repliesOption())
	if len(content.Cases) == 0 {
		doc.Errorf(strictyaml.At("cases"), "has no cases: write `cases:` and a list of them")
	}
	for i := range content.Cases {
		c := &content.Cases[i]
		c.File = file
		c.Line, _ = doc.Pos("cases", i)
		caseChecker{names, func(detail string, steps ...any) {
			doc.Errorf(strictyaml.At("cases", i).At(steps...), "%s", detail)
		}}.checkCase(c)
	}
	if err := doc.Err(); err != nil {
		return nil, clarifyTopLevel(err, len(content.Cases))
	}
	return content.Cases, nil
}

// clarifyTopLevel improves the error if the file is not a mapping. Without any
// case, this is the only mapping that can be missing.
func clarifyTopLevel(err error, cases int) error {
	const general = "must be a mapping (key: value)"
	wrong, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || cases > 0 || len(wrong) == 0 || !strings.HasPrefix(wrong[0].Detail, general) {
		return err
	}
	wrong[0].Detail = "must be a mapping with the key cases: write `cases:` above the list"
	return wrong
}
