package golden

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

var (
	//go:embed report_html.tmpl
	reportPage string
	//go:embed report_html.css
	reportStyle string
)

// WriteHTML writes the report as one self-contained page, without scripts or
// requests, and with a content security policy that forbids both. It is
// deterministic.
func WriteHTML(w io.Writer, r *Report) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"n": formatCoordinate, "share": formatShare, "points": formatTwoDigits,
		"join": func(list []string) string { return strings.Join(list, ", ") },
	}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("parse the page of a report: %w", err)
	}
	p, err := newHTMLPage(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return err
	}
	_, err = io.WriteString(w, replaceInvisible(b.String()))
	return err
}

// replaceInvisible replaces control characters and bidirectional marks by
// U+FFFD, so that the page cannot be displayed differently from its content.
// Line breaks and tabs stay.
func replaceInvisible(page string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) && r > '\u200f') {
			return utf8.RuneError
		}
		return r // an invalid byte becomes U+FFFD
	}, strings.ReplaceAll(page, "\r\n", "\n"))
}

// htmlPage is the data of the template.
type htmlPage struct {
	Report  *Report
	Policy  string
	Style   template.CSS
	Verdict string
	NotRun  int
	Tiles   []htmlTile

	Risk      *riskPlot
	Histogram *barPlot
	Intents   htmlMatrix
	Agents    htmlMatrix

	Failures, Known []htmlCase
	MoreFailures    int        // not in Failures
	Cases           []htmlCase // failures first
}

// maxFailures bounds the failures shown in full, because browsers cannot open a
// page with thousands of decisions.
const maxFailures = 500

type htmlTile struct{ Value, Label string }

type htmlCase struct {
	Case     *CaseResult
	Short    string // start of the input, on one line
	Compared []htmlCompared
	Decision string
}

type htmlCompared struct{ What, Expected, Got string }

func newHTMLPage(r *Report) (*htmlPage, error) {
	sum := sha256.Sum256([]byte(reportStyle))
	p := &htmlPage{
		Report: r,
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		Style:  template.CSS(reportStyle), //nolint:gosec // ours, embedded
		NotRun: r.Summary.Planned - r.Summary.Total,
	}
	p.Verdict = fmt.Sprintf("%d of %d cases passed", r.Summary.Passed, r.Summary.Total)
	rows := scoredConfidences(r)
	p.Tiles = reportTiles(r, rows)
	p.Risk, p.Histogram = plotRisk(rows), plotHistogram(rows)
	p.Intents, p.Agents = newHTMLMatrix(r.Confusion.Intents), newHTMLMatrix(r.Confusion.Agents)
	for i := range r.Cases {
		c := htmlCase{Case: &r.Cases[i], Short: inputExcerpt(r.Cases[i].Input)}
		p.Cases = append(p.Cases, c)
		if !c.Case.Failed() {
			if !c.Case.Passed {
				p.Known = append(p.Known, c)
			}
			continue
		}
		if len(p.Failures) == maxFailures {
			p.MoreFailures++
			continue
		}
		c.Compared = compareFields(c.Case)
		if c.Case.Decision != nil {
			decision, err := strictjson.MarshalIndent(c.Case.Decision)
			if err != nil {
				return nil, fmt.Errorf("case %s: encode the decision: %w", c.Case.ID, err)
			}
			c.Decision = string(decision)
		}
		p.Failures = append(p.Failures, c)
	}
	slices.SortStableFunc(p.Cases, func(a, b htmlCase) int { return countTrue(b.Case.Failed()) - countTrue(a.Case.Failed()) })
	return p, nil
}

func reportTiles(r *Report, rows []scoredRow) []htmlTile {
	tiles := []htmlTile{
		{formatShare(r.Summary.Passed, r.Summary.Total), "passed"},
		{strconv.Itoa(r.Summary.Failed), "failed"},
		{strconv.Itoa(r.Summary.Known), "known failures"},
	}
	if right, total := correctCells(r.Confusion.Intents); total > 0 {
		tiles = append(tiles, htmlTile{formatShare(right, total), "intents right"})
	}
	if right, total := correctCells(r.Confusion.Agents); total > 0 {
		tiles = append(tiles, htmlTile{formatShare(right, total), "agents right"})
	}
	if e, ok := calibrationError(claimedOnly(rows)); ok {
		tiles = append(tiles, htmlTile{formatPercent(e), "calibration error"})
	}
	if best, ok := widestCoverage(claimedCurve(rows), wantedPrecision); ok {
		tiles = append(tiles, htmlTile{formatPercent(best.Coverage), "answered at ≥ 98 % right"})
	}
	return tiles
}

func correctCells(cells []ConfusionCell) (right, total int) {
	for _, c := range cells {
		total += c.Count
		if c.Expected == c.Got {
			right += c.Count
		}
	}
	return right, total
}

// compareFields lists expected and actual values.
func compareFields(c *CaseResult) []htmlCompared {
	var rows []htmlCompared
	add := func(what string, named bool, want, got string) {
		if named {
			rows = append(rows, htmlCompared{what, cmp.Or(want, "none"), cmp.Or(got, "none")})
		}
	}
	join := func(list []string) string { return strings.Join(list, ", ") }
	add("outcome", c.Expect.Outcome != "", string(c.Expect.Outcome), string(c.Actual.Outcome))
	add("agents", c.Expect.Agents != nil, join(c.Expect.Agents), join(c.Actual.Agents))
	add("intent", c.Expect.Intent != "", c.Expect.Intent, c.Actual.Intent)
	add("domains", c.Expect.Domains != nil, join(c.Expect.Domains), join(c.Actual.Domains))
	add("reason", c.Expect.Reason != "", c.Expect.Reason, c.Actual.Reason)
	rows = append(rows, htmlCompared{"confidence", "", formatTwoDigits(c.Actual.Confidence)})
	return rows
}

// maxExcerpt bounds the input shown in a table, in characters.
const maxExcerpt = 90

func inputExcerpt(input string) string {
	line := strings.Join(strings.Fields(input), " ")
	if short := truncateRunes(line, maxExcerpt); short != line {
		return short + "…"
	}
	return line
}

func formatShare(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return formatPercent(float64(part) / float64(whole))
}

func formatPercent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

func formatTwoDigits(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// htmlMatrix is a confusion matrix, or its summary if it is too large.
type htmlMatrix struct {
	Labels   []string // of rows and columns; empty if there are too many
	Rows     []htmlMatrixRow
	Distinct int
	Right    int
	Total    int
	Worst    []ConfusionCell // wrong cells, most frequent first
	Left     int             // wrong cells not in Worst
}

type htmlMatrixRow struct {
	Label string
	Cells []htmlMatrixCell
}

type htmlMatrixCell struct {
	Count int
	Class string
}

const (
	maxMatrixLabels = 24
	maxWorst        = 15
)

func newHTMLMatrix(cells []ConfusionCell) htmlMatrix {
	var m htmlMatrix
	m.Right, m.Total = correctCells(cells)
	counts := map[ConfusionCell]int{}
	var labels []string
	for _, c := range cells {
		labels = append(labels, c.Expected, c.Got)
		counts[ConfusionCell{Expected: c.Expected, Got: c.Got}] += c.Count
		if c.Expected != c.Got {
			m.Worst = append(m.Worst, c)
		}
	}
	slices.SortStableFunc(m.Worst, func(a, b ConfusionCell) int { return cmp.Compare(b.Count, a.Count) })
	if len(m.Worst) > maxWorst {
		m.Left = len(m.Worst) - maxWorst
		m.Worst = m.Worst[:maxWorst]
	}
	slices.Sort(labels)
	labels = slices.Compact(labels)
	if m.Distinct = len(labels); m.Distinct > maxMatrixLabels {
		return m
	}
	m.Labels = labels
	for _, expected := range labels {
		row := htmlMatrixRow{Label: cmp.Or(expected, contract.Unknown)}
		for _, got := range labels {
			row.Cells = append(row.Cells, matrixCell(counts, expected, got, labels))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// matrixCell shades a cell by its share of the row.
func matrixCell(counts map[ConfusionCell]int, expected, got string, labels []string) htmlMatrixCell {
	sum := 0
	for _, label := range labels {
		sum += counts[ConfusionCell{Expected: expected, Got: label}]
	}
	c := htmlMatrixCell{Count: counts[ConfusionCell{Expected: expected, Got: got}]}
	var classes []string
	if c.Count > 0 {
		classes = append(classes, "heat"+strconv.Itoa(min(1+4*c.Count/(sum+1), 4)))
	}
	if expected == got && c.Count > 0 {
		classes = append(classes, "right")
	}
	c.Class = strings.Join(classes, " ")
	return c
}
