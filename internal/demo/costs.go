package demo

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

// costRow is one line of a cost export. A missing column is "" or zero.
type costRow struct {
	service, resource, tags string
	date                    time.Time
	cost, cpu               float64 // cpu is NaN if unknown
}

// costTotal is the sum of the rows that share a name.
type costTotal struct {
	Name string  `json:"name"`
	Cost float64 `json:"cost"`
}

// costTable is one part of a report.
type costTable struct {
	Title  string      `json:"title"`
	Totals []costTotal `json:"totals"`
}

// parseCosts reads a CSV text with a header. Fields are separated by commas, or by
// semicolons: then amounts have a decimal comma and dates begin with the day.
func parseCosts(text string) ([]costRow, error) {
	reader := csv.NewReader(strings.NewReader(text))
	header, _, _ := strings.Cut(text, "\n")
	layout, number := "01/02/2006", strings.NewReplacer(",", "")
	if strings.Contains(header, ";") {
		reader.Comma, layout, number = ';', "02/01/2006", strings.NewReplacer(".", "", ",", ".")
	}
	records, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	field := func(record []string, header string) string {
		pattern := regexp.MustCompile(header)
		if i := slices.IndexFunc(records[0], pattern.MatchString); i >= 0 {
			return strings.TrimSpace(record[i])
		}
		return ""
	}
	var rows []costRow
	for i, record := range records[1:] {
		row := costRow{
			service: field(record, "(?i)servi"), resource: field(record, "(?i)resource|recurso"), tags: field(record, "(?i)tag|etiqueta"),
		}
		row.date, _ = time.Parse(layout, field(record, "(?i)date|fecha"))
		amount := field(record, "(?i)cost|importe")
		if row.cost, err = strconv.ParseFloat(number.Replace(amount), 64); err != nil {
			return nil, fmt.Errorf("row %d: the cost %q is not an amount", i+2, amount)
		}
		if row.cpu, err = strconv.ParseFloat(field(record, "(?i)cpu"), 64); err != nil {
			row.cpu = math.NaN()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// sumCosts adds up the rows of each name, and returns the most expensive first. Rows
// with the name "" are left out.
func sumCosts(rows []costRow, nameOf func(costRow) string) []costTotal {
	sums := map[string]float64{}
	for _, row := range rows {
		if name := nameOf(row); name != "" {
			sums[name] += row.cost
		}
	}
	totals := make([]costTotal, 0, len(sums))
	for name, sum := range sums {
		totals = append(totals, costTotal{name, math.Round(sum*100) / 100})
	}
	slices.SortFunc(totals, func(a, b costTotal) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Name, b.Name))
	})
	return totals
}

// summarizeCosts returns the tables of a report.
func summarizeCosts(rows []costRow) []costTable {
	onlyIf := func(condition bool, name string) string {
		if condition {
			return name
		}
		return ""
	}
	dated := func(layout string) func(costRow) string {
		return func(r costRow) string { return onlyIf(!r.date.IsZero(), r.date.Format(layout)) }
	}
	resources := sumCosts(rows, func(r costRow) string { return r.resource })
	days := sumCosts(rows, dated(time.DateOnly))
	unusual := slices.IndexFunc(days, func(d costTotal) bool { return d.Cost < 1.5*days[len(days)/2].Cost })
	return []costTable{
		{"By service", sumCosts(rows, func(r costRow) string { return r.service })},
		{"Top resources", resources[:min(5, len(resources))]},
		{"By month", sumCosts(rows, dated("2006-01"))},
		{"Days over 1.5 times the median", days[:max(0, unusual)]},
		{"Untagged", sumCosts(rows, func(r costRow) string { return onlyIf(r.tags == "", r.resource) })},
		{"Idle (CPU below 3 %)", sumCosts(rows, func(r costRow) string { return onlyIf(r.cpu < 3, r.resource) })},
	}
}

// analyseCosts is the work of billing_agent. It adds up the export in inputs.csv,
// or in the first code block of the prompt.
func analyseCosts(_ context.Context, task contract.Task) (contract.Result, error) {
	text := textInput(task, "csv")
	if text == "" {
		text = codeBlock(agentkit.Prompt(task))
	}
	if strings.TrimSpace(text) == "" {
		return agentkit.Failure("there is no cost export to analyse: send it as inputs.csv, with a header and a column of costs"), nil
	}
	rows, err := parseCosts(text)
	if err != nil {
		return agentkit.Failure("the cost export cannot be read: " + err.Error()), nil //nolint:nilerr // the result carries the error
	}
	sum := 0.0
	for _, row := range rows {
		sum += row.cost
	}
	tables := summarizeCosts(rows)
	var answer strings.Builder
	fmt.Fprintf(&answer, "%.2f in %d rows", sum, len(rows))
	for _, table := range tables {
		if len(table.Totals) > 0 {
			fmt.Fprintf(&answer, "\n%s:", table.Title)
		}
		for _, t := range table.Totals {
			fmt.Fprintf(&answer, "\n  %10.2f  %5.1f %%  %s", t.Cost, 100*t.Cost/sum, t.Name)
		}
	}
	return newResult(contract.ResultSuccess, answer.String(), map[string]any{"costs": tables},
		map[string]float64{"rows": float64(len(rows))}, "amounts were rounded after adding up")
}
