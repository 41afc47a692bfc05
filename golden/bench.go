package golden

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/lexical"
)

// BenchConfig names the labelled data sets of a benchmark: TSV files of
// text<TAB>intent<TAB>domain. The intent oos marks an out-of-scope row.
type BenchConfig struct {
	Train      string // training rows
	Test       string // test rows
	OutOfScope string // additional out-of-scope rows; labels are ignored
	// Validation is for choosing the accept threshold; "" = the training data,
	// as in a router.
	Validation string
	// Tools is a JSONL file of {tool, description} to rank for Test or, without
	// Test, of {query, candidates, answer} to rank within each row.
	Tools string
	Multi bool // several labels per row, joined with #; prompts are split

	// Progress reports the progress of a stage. It may be nil.
	Progress func(stage string, done, total int)
}

// Validate checks the combination of files.
func (cfg *BenchConfig) Validate() error {
	switch {
	case cfg.Tools == "" && (cfg.Train == "" || cfg.Test == ""):
		return errors.New("name what to train on and what to test with, --train T.tsv --test S.tsv, or --tools FILE.jsonl")
	case cfg.Tools != "" && (cfg.Train != "" || cfg.Validation != "" || cfg.Multi):
		return errors.New("--tools ranks by description alone: it goes with --test and --oos only")
	case cfg.Tools != "" && cfg.Test == "" && cfg.OutOfScope != "":
		return errors.New("--oos needs --test; in a file of queries an empty answer marks a row as out of scope")
	}
	return nil
}

// RunBench measures the classifier, in its only configuration, on labelled data
// sets. All figures except times are deterministic.
func RunBench(ctx context.Context, cfg BenchConfig) (*BenchReport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int, int) {}
	}
	if cfg.Tools != "" {
		return benchTools(ctx, &cfg)
	}
	sets, err := readBenchSets(&cfg)
	if err != nil {
		return nil, err
	}
	return sets.measureRows(ctx, &cfg)
}

// benchData contains the rows of the files. The out-of-scope rows of Test are
// in oos.
type benchData struct {
	train, test, oos, validation []labelledRow
}

func readBenchSets(cfg *BenchConfig) (*benchData, error) {
	var sets benchData
	for _, file := range []struct {
		path string
		into *[]labelledRow
	}{{cfg.Train, &sets.train}, {cfg.Test, &sets.test}, {cfg.OutOfScope, &sets.oos}, {cfg.Validation, &sets.validation}} {
		if file.path == "" {
			continue
		}
		rows, err := readLabelledRows(file.path)
		if err != nil {
			return nil, err
		}
		*file.into = rows
	}
	sets.test, sets.oos = splitOutOfScope(sets.test, sets.oos)
	if len(sets.test) == 0 {
		return nil, fmt.Errorf("%s: every row is %s: there is nothing to be right about; name it with --oos", cfg.Test, outOfScope)
	}
	return &sets, nil
}

// splitOutOfScope separates the out-of-scope rows of a test set.
func splitOutOfScope(test, oos []labelledRow) (in, out []labelledRow) {
	out = slices.Clone(oos)
	for i := range out {
		out[i].Intent = outOfScope
	}
	for _, row := range test {
		if row.isOutOfScope() {
			out = append(out, row)
		} else {
			in = append(in, row)
		}
	}
	return in, out
}

func (s *benchData) measureRows(ctx context.Context, cfg *BenchConfig) (*BenchReport, error) {
	registry, err := newBenchRegistry(s.train)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Train, err)
	}
	r := &BenchReport{
		N: len(s.test), OutOfScopeN: len(s.oos),
		Intents: len(registry.snapshot.Intents), Examples: registry.examples,
	}
	cfg.Progress("train", 0, 1)
	model, took := timeTraining(classifier.BuildCorpus(registry.snapshot))
	cfg.Progress("train", 1, 1)
	r.TrainMS = roundFigure(roundMilliseconds(took))
	r.addModel(model)

	c, err := newRowClassifier(registry, model, cfg.Multi)
	if err != nil {
		return nil, err
	}
	predictions, err := c.predictAll(ctx, "classify", slices.Concat(s.test, s.oos), cfg.Progress)
	if err != nil {
		return nil, err
	}
	r.addPredictions(predictions, registry, cfg.Multi)
	accept, source := model.AcceptThreshold(), AcceptFromTraining
	if s.validation != nil {
		seen, err := c.predictAll(ctx, "validate", s.validation, cfg.Progress)
		if err != nil {
			return nil, err
		}
		accept, source = acceptThreshold(seen), AcceptFromValidation
	}
	r.addOperatingPoint(predictions, accept, source)
	if err := r.measureTime(ctx, c.classifyText, rowTexts(s.test), cfg.Progress); err != nil {
		return nil, err
	}
	return r, nil
}

// trainRuns is the number of training runs, of which the median time counts.
const trainRuns = 3

func timeTraining(c lexical.Corpus) (*lexical.Model, time.Duration) {
	var model *lexical.Model
	took := make([]time.Duration, trainRuns)
	for i := range took {
		runtime.GC() // exclude earlier garbage
		start := time.Now()
		model = lexical.Train(c)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return model, took[trainRuns/2]
}

// acceptThreshold returns the threshold that reaches wantedPrecision on the
// rows, +Inf if there is none.
func acceptThreshold(predictions []rowPrediction) float64 {
	best, ok := widestCoverage(riskCoverageCurve(acceptableRows(predictions)), wantedPrecision)
	if !ok || best.Threshold < 0 {
		return math.Inf(1)
	}
	return best.Threshold
}

func rowTexts(rows []labelledRow) []string {
	list := make([]string, len(rows))
	for i := range rows {
		list[i] = rows[i].Text
	}
	return list
}

// progressEvery is the number of rows between progress reports and checks of
// ctx.
const progressEvery = 200

// forEachRow calls do for 0 … n-1 until ctx ends.
func forEachRow(ctx context.Context, stage string, n int, progress func(string, int, int), do func(i int)) error {
	for i := range n {
		if i%progressEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(stage, i, n)
		}
		do(i)
	}
	progress(stage, n, n)
	return nil
}

// measureTime measures the time and allocations of classifying one text. The
// texts were classified before, so that caches are warm.
func (r *BenchReport) measureTime(ctx context.Context, classify func(text string), list []string, progress func(string, int, int)) error {
	took := make([]int64, len(list))
	var before, after runtime.MemStats
	runtime.GC()
	// Report no progress meanwhile, because it would allocate.
	progress("time", 0, len(list))
	runtime.ReadMemStats(&before)
	err := forEachRow(ctx, "time", len(list), func(string, int, int) {}, func(i int) {
		start := time.Now()
		classify(list[i])
		took[i] = int64(time.Since(start))
	})
	runtime.ReadMemStats(&after)
	progress("time", len(list), len(list))
	if err != nil {
		return err
	}
	slices.Sort(took)
	r.ClassifyP50 = roundFigure(roundMicroseconds(quantile(took, 0.50)))
	r.ClassifyP99 = roundFigure(roundMicroseconds(quantile(took, 0.99)))
	allocs := float64(after.Mallocs-before.Mallocs) / float64(len(list))
	r.AllocsPerOp = roundFigure(math.Round(allocs*10) / 10)
	return nil
}

func roundMilliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 1e2 }

func roundMicroseconds(ns int64) float64 { return math.Round(float64(ns)/10) / 1e2 }
