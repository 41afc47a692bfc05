package golden

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/lexical"
)

// rankedRow is a query and what of the ranking is right; nothing is when it is
// out of scope.
type rankedRow struct {
	text   string
	answer []string
}

// benchTools measures how well tools are found by their descriptions alone.
func benchTools(ctx context.Context, cfg *BenchConfig) (*BenchReport, error) {
	tools, err := readTools(cfg.Tools, cfg.Test == "")
	if err != nil {
		return nil, err
	}
	if cfg.Test == "" {
		return benchWithinRows(ctx, cfg, tools)
	}
	sets, err := readBenchSets(&BenchConfig{Test: cfg.Test, OutOfScope: cfg.OutOfScope})
	if err != nil {
		return nil, err
	}
	docs := make([]lexical.Document, len(tools))
	named := map[string]bool{}
	for i, tool := range tools {
		docs[i] = lexical.Document{Name: tool.Tool, Description: tool.Description}
		named[tool.Tool] = true
	}
	runtime.GC()
	start := time.Now()
	ranker := lexical.NewRanker(docs)
	r := &BenchReport{Intents: len(named), TrainMS: figure(milliseconds(time.Since(start)))}

	var rows []rankedRow
	for _, row := range sets.test {
		rows = append(rows, rankedRow{text: row.Text, answer: []string{row.Intent}})
		r.Unseen += one(!named[row.Intent])
	}
	for _, row := range sets.oos {
		rows = append(rows, rankedRow{text: row.Text})
	}
	if err := r.rank(ctx, cfg, rows, func(i int) []lexical.RankedDocument { return ranker.Rank(rows[i].text) }); err != nil {
		return nil, err
	}
	if err := r.time(ctx, func(text string) { ranker.Rank(text) }, texts(sets.test), cfg.Progress); err != nil {
		return nil, err
	}
	return r, nil
}

// benchWithinRows ranks the candidates of each row for its query. What is timed
// is both: to read the candidates and to rank them.
func benchWithinRows(ctx context.Context, cfg *BenchConfig, tools []toolRow) (*BenchReport, error) {
	rows := make([]rankedRow, len(tools))
	docs := make([][]lexical.Document, len(tools))
	for i, t := range tools {
		rows[i] = rankedRow{text: t.Query, answer: t.Answer}
		for _, c := range t.Candidates {
			docs[i] = append(docs[i], lexical.Document(c))
		}
	}
	r := &BenchReport{}
	rank := func(i int) []lexical.RankedDocument { return lexical.NewRanker(docs[i]).Rank(rows[i].text) }
	if err := r.rank(ctx, cfg, rows, rank); err != nil {
		return nil, err
	}
	list := make([]string, len(rows))
	for i := range rows {
		list[i] = rows[i].text
	}
	i := -1
	if err := r.time(ctx, func(string) { i++; rank(i) }, list, cfg.Progress); err != nil {
		return nil, err
	}
	return r, nil
}

// topRanks is how far down the ranking Top5Accuracy looks: as many as a model
// could be shown.
const topRanks = 5

// rank fills in how often the first, and one of the first five, is right. The
// score of the first one tells queries that have an answer from those that have
// none.
func (r *BenchReport) rank(ctx context.Context, cfg *BenchConfig, rows []rankedRow, rank func(i int) []lexical.RankedDocument) error {
	var first, top int
	points := make([]scored, len(rows))
	err := each(ctx, "rank", len(rows), cfg.Progress, func(i int) {
		row, ranked := rows[i], rank(i)
		points[i].OutOfScope = len(row.answer) == 0
		if len(ranked) > 0 {
			points[i].Confidence = ranked[0].Score
		}
		if points[i].OutOfScope {
			r.OutOfScopeN++
			return
		}
		r.N++
		at := slices.IndexFunc(ranked, func(d lexical.RankedDocument) bool { return slices.Contains(row.answer, d.Name) })
		first += one(at == 0)
		top += one(at >= 0 && at < topRanks)
	})
	if err != nil {
		return err
	}
	if r.N+r.OutOfScopeN == 0 {
		return fmt.Errorf("%s: has no rows", cfg.Tools)
	}
	r.Accuracy, r.Top5Accuracy = share(first, r.N), share(top, r.N)
	r.OutOfScopeAUROC = figureIf(auroc(points))
	return nil
}
