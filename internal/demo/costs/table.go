package costs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Row is one line of an export. What the file has no column for is empty.
type Row struct {
	Line     int
	Day      time.Time
	Service  string
	Resource string
	Tags     string
	Cost     *big.Rat
	Quantity *big.Rat // nil when there is none
	Usage    *big.Rat // average utilisation in percent; nil when there is none
}

// Table is a cost export, read and checked.
type Table struct {
	Rows     []Row
	Currency string // "" when the file names none
	columns  map[column]int
}

// RowError is the first thing in a file that makes its numbers unreliable.
type RowError struct {
	Row    int    // line of the file, from 1
	Column string // the header's name; "" when it is the line as a whole
	Detail string
}

func (e *RowError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("row %d: %s", e.Row, e.Detail)
	}
	return fmt.Sprintf("row %d, column %q: %s", e.Row, e.Column, e.Detail)
}

// Read parses a CSV export. Its errors are of type *RowError.
func Read(text string) (*Table, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if !utf8.ValidString(text) {
		return nil, &RowError{Row: badUTF8(text), Detail: "is not UTF-8"}
	}
	delimiter := delimiterOf(text)
	header, records, err := readCSV(text, delimiter)
	if err != nil {
		return nil, err
	}
	t := &Table{columns: findColumns(header)}
	if _, ok := t.columns[cost]; !ok {
		return nil, &RowError{Row: 1, Detail: fmt.Sprintf("no column of costs; the header has %q", clip(strings.Join(header, ", "), 200))}
	}
	if len(records) == 0 {
		return nil, &RowError{Row: 1, Detail: "the table has a header and no rows"}
	}
	if _, ok := t.columns[currency]; !ok {
		t.Currency = unitOf(header[t.columns[cost]])
	}
	r := reader{table: t, header: header, records: records}
	r.mark = decimalMark(r.values(cost), delimiter)
	r.order = orderOf(r.values(date), r.mark)
	return t, r.rows()
}

// record is one line before it is understood.
type record struct {
	line   int
	fields []string
}

func readCSV(text string, delimiter rune) (header []string, records []record, err error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = delimiter
	r.TrimLeadingSpace = delimiter != '\t' // it would swallow empty fields
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, csvError(err, header, len(fields))
		}
		line, _ := r.FieldPos(0)
		if header == nil {
			header = fields
			continue
		}
		records = append(records, record{line, fields})
	}
	if header == nil {
		return nil, nil, &RowError{Row: 1, Detail: "the table is empty"}
	}
	return header, records, nil
}

// csvError says in words what encoding/csv found.
func csvError(err error, header []string, fields int) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return &RowError{Row: 1, Detail: err.Error()}
	}
	e := &RowError{Row: p.Line, Detail: p.Err.Error()}
	switch {
	case errors.Is(p.Err, csv.ErrFieldCount):
		e.Detail = fmt.Sprintf("has %d fields, the header %d", fields, len(header))
	case errors.Is(p.Err, csv.ErrQuote), errors.Is(p.Err, csv.ErrBareQuote):
		e.Row, e.Detail = p.StartLine, fmt.Sprintf("a quotation mark is missing or out of place (line %d, byte %d)", p.Line, p.Column)
	}
	return e
}

// delimiterOf picks the delimiter the first line has most of.
func delimiterOf(text string) rune {
	line, _, _ := strings.Cut(text, "\n")
	best, most := ',', 0
	for _, d := range []rune{',', ';', '\t', '|'} {
		if n := strings.Count(line, string(d)); n > most {
			best, most = d, n
		}
	}
	return best
}

func badUTF8(text string) int {
	line := 1
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				break
			}
		}
		if r == '\n' {
			line++
		}
	}
	return line
}

// reader turns records into rows.
type reader struct {
	table   *Table
	header  []string
	records []record
	mark    byte
	order   dateOrder
}

// values are the non-empty fields of a column.
func (r *reader) values(c column) []string {
	at, ok := r.table.columns[c]
	if !ok {
		return nil
	}
	var out []string
	for _, rec := range r.records {
		if v := rec.fields[at]; v != "" {
			out = append(out, v)
		}
	}
	return out
}

// field is a record's text in a column, "" when there is no such column. Line
// ends and other control characters become spaces: names are printed.
func (r *reader) field(rec record, c column) string {
	at, ok := r.table.columns[c]
	if !ok {
		return ""
	}
	return strings.TrimSpace(strings.Map(func(x rune) rune {
		if unicode.IsControl(x) {
			return ' '
		}
		return x
	}, rec.fields[at]))
}

func (r *reader) wrong(rec record, c column, detail string) *RowError {
	name := clip(r.header[r.table.columns[c]], 40)
	return &RowError{Row: rec.line, Column: name, Detail: fmt.Sprintf("%q %s", clip(r.field(rec, c), 40), detail)}
}

func (r *reader) rows() error {
	for _, rec := range r.records {
		row, err := r.row(rec)
		if err != nil {
			return err
		}
		r.table.Rows = append(r.table.Rows, row)
	}
	return nil
}

func (r *reader) row(rec record) (Row, error) {
	row := Row{
		Line: rec.line, Service: r.field(rec, service), Resource: r.field(rec, resource), Tags: r.field(rec, tags),
	}
	var err error
	if row.Cost, err = parseAmount(r.field(rec, cost), r.mark); err != nil {
		return row, r.wrong(rec, cost, err.Error())
	}
	if _, ok := r.table.columns[date]; ok {
		if row.Day, ok = parseDate(r.field(rec, date), r.order); !ok {
			return row, r.wrong(rec, date, "is not a date")
		}
	}
	if err := r.currency(rec); err != nil {
		return row, err
	}
	if row.Quantity, err = r.number(rec, quantity); err != nil {
		return row, err
	}
	row.Usage, err = r.number(rec, usage)
	return row, err
}

// number is an optional figure, nil when the field is empty.
func (r *reader) number(rec record, c column) (*big.Rat, error) {
	v := strings.TrimSuffix(r.field(rec, c), "%")
	if v == "" {
		return nil, nil
	}
	n, err := parseAmount(v, r.mark)
	if err != nil {
		return nil, r.wrong(rec, c, "is not a number")
	}
	return n, nil
}

// currency refuses a table that mixes currencies: its sum means nothing.
func (r *reader) currency(rec record) error {
	c := r.field(rec, currency)
	if c == "" {
		return nil
	}
	if r.table.Currency == "" {
		r.table.Currency = c
	}
	if c != r.table.Currency {
		return r.wrong(rec, currency, "differs from "+clip(r.table.Currency, 40)+" above; costs in several currencies cannot be added up")
	}
	return nil
}
