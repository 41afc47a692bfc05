package golden

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// labelledRow is one row of a data set: text<TAB>intent<TAB>domain.
type labelledRow struct {
	Text, Intent, Domain string
}

// outOfScope is the intent of out-of-scope rows.
const outOfScope = "oos"

func (r *labelledRow) isOutOfScope() bool { return r.Intent == outOfScope }

// maxBenchLine bounds a line of a data set, in bytes.
const maxBenchLine = 4 << 20

// readLabelledRows reads a TSV file. Errors contain file and line, and how to
// fix them.
func readLabelledRows(path string) ([]labelledRow, error) {
	var rows []labelledRow
	err := forEachLine(path, func(n int, line string) error {
		if n == 1 && strings.EqualFold(line, "text\tintent\tdomain") {
			return nil // a header
		}
		row, err := parseLabelledRow(line)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: has no rows: write one text<TAB>intent<TAB>domain a line", path)
	}
	return rows, nil
}

func parseLabelledRow(line string) (labelledRow, error) {
	fields := strings.Split(line, "\t")
	if err := checkTSVFields(fields, line); err != nil {
		return labelledRow{}, err
	}
	return labelledRow{Text: fields[0], Intent: fields[1], Domain: fields[2]}, nil
}

// checkTSVFields returns an error if a line is not a valid row.
func checkTSVFields(fields []string, line string) error {
	names := [...]string{"text", "intent", "domain"}
	switch {
	case !utf8.ValidString(line):
		return errors.New("is not UTF-8: convert the file, for instance with iconv -t UTF-8")
	case len(fields) == 1:
		return errors.New("has no tab: write text<TAB>intent<TAB>domain")
	case len(fields) < len(names):
		return fmt.Errorf("has no column %s: write text<TAB>intent<TAB>domain", names[len(fields)])
	case len(fields) > len(names):
		return fmt.Errorf("has %d columns, and there are 3, text<TAB>intent<TAB>domain: replace the tabs inside the text by spaces", len(fields))
	}
	for i, name := range names {
		if strings.TrimSpace(fields[i]) == "" {
			return fmt.Errorf("column %s is empty: fill it in or delete the line", name)
		}
	}
	return nil
}

// toolRow is one line of a --tools file: a tool and its description, or a query
// with its candidates and the correct ones among them.
type toolRow struct {
	Tool        string `json:"tool"`
	Description string `json:"description"`

	Query      string          `json:"query"`
	Candidates []toolCandidate `json:"candidates"`
	Answer     []string        `json:"answer"`
}

type toolCandidate struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// readTools reads a JSONL file of tools or, if ofQueries, of queries. Unknown
// members are ignored.
func readTools(path string, ofQueries bool) ([]toolRow, error) {
	var rows []toolRow
	err := forEachLine(path, func(_ int, line string) error {
		row, err := parseToolRow(line, ofQueries)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: has no rows: write one JSON object a line", path)
	}
	return rows, nil
}

func parseToolRow(line string, ofQueries bool) (toolRow, error) {
	var row toolRow
	if err := strictjson.UnmarshalAllowUnknown([]byte(line), &row); err != nil {
		return row, fmt.Errorf("is not a JSON object of the right shape: %w", err)
	}
	err := checkToolRow(&row, ofQueries)
	return row, err
}

func checkToolRow(row *toolRow, ofQueries bool) error {
	switch {
	case !ofQueries && row.Tool == "" && row.Query != "":
		return errors.New(`is a query with its own candidates: leave --test out, or give --tools a file of {"tool","description"}`)
	case !ofQueries && row.Tool == "":
		return errors.New(`names no tool: write {"tool": "…", "description": "…"}`)
	case ofQueries && row.Query == "" && row.Tool != "":
		return errors.New(`is a tool: name the queries with --test, or give --tools a file of {"query","candidates","answer"}`)
	case ofQueries && row.Query == "":
		return errors.New(`has no query: write {"query": "…", "candidates": [{"name": "…", "description": "…"}], "answer": ["…"]}`)
	case ofQueries && len(row.Candidates) == 0:
		return errors.New(`has no candidates: list what there is to choose from, {"name": "…", "description": "…"}`)
	}
	for i, c := range row.Candidates {
		if c.Name == "" {
			return fmt.Errorf("candidate %d has no name", i+1)
		}
	}
	return nil
}

// forEachLine calls read with each non-empty line of the file and its number.
// Errors get file and line.
func forEachLine(path string, read func(n int, line string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: check the path", err)
	}
	defer f.Close()
	if n, err := scanLines(f, read); err != nil {
		return fmt.Errorf("%s:%d: %w", path, n, err)
	}
	return nil
}

// scanLines returns the line number of the error.
func scanLines(r io.Reader, read func(n int, line string) error) (int, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxBenchLine)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // byte order mark
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := read(n, string(line)); err != nil {
			return n, err
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("is longer than %d bytes: shorten it, or break it up", maxBenchLine)
	}
	return n + 1, err
}
