package golden

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/caprouter/caprouter/internal/lexical/ranking"
)

// rankedQuery is a query and the correct answers, none if it is out of scope.
type rankedQuery struct {
	text   string
	answer []string
}

// benchTools measures the ranking of tools by their descriptions.
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
	docs := make([]ranking.Document, len(tools))
	named := map[string]bool{}
	for i, tool := range tools {
		docs[i] = ranking.Document{Name: tool.Tool, Description: tool.Description}
		named[tool.Tool] = true
	}
	runtime.GC()
	start := time.Now()
	ranker := ranking.New(docs)
	r := &BenchReport{Intents: len(named), TrainMS: roundFigure(roundMilliseconds(time.Since(start)))}

	var rows []rankedQuery
	for _, row := range sets.test {
		rows = append(rows, rankedQuery{text: row.Text, answer: []string{row.Intent}})
		r.Unseen += countTrue(!named[row.Intent])
	}
	for _, row := range sets.oos {
		rows = append(rows, rankedQuery{text: row.Text})
	}
	if err := r.addRanking(ctx, cfg, rows, func(i int) []ranking.Result { return ranker.Rank(rows[i].text) }); err != nil {
		return nil, err
	}
	if err := r.measureTime(ctx, func(text string) { ranker.Rank(text) }, rowTexts(sets.test), cfg.Progress); err != nil {
		return nil, err
	}
	return r, nil
}

// benchWithinRows ranks the candidates of each row for its query. The measured
// time includes indexing the candidates.
func benchWithinRows(ctx context.Context, cfg *BenchConfig, tools []toolRow) (*BenchReport, error) {
	rows := make([]rankedQuery, len(tools))
	docs := make([][]ranking.Document, len(tools))
	for i, t := range tools {
		rows[i] = rankedQuery{text: t.Query, answer: t.Answer}
		for _, c := range t.Candidates {
			docs[i] = append(docs[i], ranking.Document(c))
		}
	}
	r := &BenchReport{}
	rank := func(i int) []ranking.Result { return ranking.New(docs[i]).Rank(rows[i].text) }
	if err := r.addRanking(ctx, cfg, rows, rank); err != nil {
		return nil, err
	}
	list := make([]string, len(rows))
	for i := range rows {
		list[i] = rows[i].text
	}
	i := -1
	if err := r.measureTime(ctx, func(string) { i++; rank(i) }, list, cfg.Progress); err != nil {
		return nil, err
	}
	return r, nil
}

// topRanks is the depth of Top5Accuracy: as many candidates as a model could be
// shown.
const topRanks = 5

// addRanking adds the accuracy of the first and of the first five candidates.
// The score of the first candidate separates queries with an answer from those
// without.
func (r *BenchReport) addRanking(ctx context.Context, cfg *BenchConfig, rows []rankedQuery, rank func(i int) []ranking.Result) error {
	var first, top int
	points := make([]scoredRow, len(rows))
	err := forEachRow(ctx, "rank", len(rows), cfg.Progress, func(i int) {
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
		at := slices.IndexFunc(ranked, func(d ranking.Result) bool { return slices.Contains(row.answer, d.Name) })
		first += countTrue(at == 0)
		top += countTrue(at >= 0 && at < topRanks)
	})
	if err != nil {
		return err
	}
	if r.N+r.OutOfScopeN == 0 {
		return fmt.Errorf("%s: has no rows", cfg.Tools)
	}
	r.Accuracy, r.Top5Accuracy = shareFigure(first, r.N), shareFigure(top, r.N)
	r.OutOfScopeAUROC = optionalFigure(auroc(points))
	return nil
}
