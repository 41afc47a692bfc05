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

// BenchConfig names the labelled sets a bench measures on: TSV files of
// text<TAB>intent<TAB>domain, where the intent oos marks a row nothing should be
// found for.
type BenchConfig struct {
	Train      string // what the registry is made of
	Test       string // what is classified
	OutOfScope string // rows nothing should be found for, whatever their labels; "" = none
	// Validation is where the accept threshold is chosen instead of from the
	// training data; "" = none, as in a router.
	Validation string
	// Tools is a JSONL file of {tool, description} to rank for Test or, without
	// Test, of {query, candidates, answer} to rank within each row.
	Tools string
	Multi bool // labels are joined with #, and a prompt is split as a router does

	// Progress hears how far a stage is; nil = nobody.
	Progress func(stage string, done, total int)
}

// Validate says which files are missing or too many.
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

// RunBench measures the classifier, in the one configuration there is, on labelled
// sets. Its figures but for times are the same every time.
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
	return sets.measure(ctx, &cfg)
}

// benchSets are the files, read: the test rows are the in-scope ones of Test,
// and what they left behind stands with OutOfScope.
type benchSets struct {
	train, test, oos, validation []utterance
}

func readBenchSets(cfg *BenchConfig) (*benchSets, error) {
	var sets benchSets
	for _, file := range []struct {
		path string
		into *[]utterance
	}{{cfg.Train, &sets.train}, {cfg.Test, &sets.test}, {cfg.OutOfScope, &sets.oos}, {cfg.Validation, &sets.validation}} {
		if file.path == "" {
			continue
		}
		rows, err := readUtterances(file.path)
		if err != nil {
			return nil, err
		}
		*file.into = rows
	}
	sets.test, sets.oos = apart(sets.test, sets.oos)
	if len(sets.test) == 0 {
		return nil, fmt.Errorf("%s: every row is %s: there is nothing to be right about; name it with --oos", cfg.Test, outOfScope)
	}
	return &sets, nil
}

// apart moves the rows of a test set that are out of scope to those that are.
func apart(test, oos []utterance) (in, out []utterance) {
	out = slices.Clone(oos)
	for i := range out {
		out[i].Intent = outOfScope
	}
	for _, row := range test {
		if row.outOfScope() {
			out = append(out, row)
		} else {
			in = append(in, row)
		}
	}
	return in, out
}

func (s *benchSets) measure(ctx context.Context, cfg *BenchConfig) (*BenchReport, error) {
	registry, err := newBenchRegistry(s.train)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Train, err)
	}
	r := &BenchReport{
		N: len(s.test), OutOfScopeN: len(s.oos),
		Intents: len(registry.snapshot.Intents), Examples: registry.examples,
	}
	cfg.Progress("train", 0, 1)
	model, took := trainTimed(classifier.BuildCorpus(registry.snapshot))
	cfg.Progress("train", 1, 1)
	r.TrainMS = figure(milliseconds(took))
	r.describe(model)

	judge, err := newJudge(registry, model, cfg.Multi)
	if err != nil {
		return nil, err
	}
	verdicts, err := judge.all(ctx, "classify", slices.Concat(s.test, s.oos), cfg.Progress)
	if err != nil {
		return nil, err
	}
	r.count(verdicts, registry, cfg.Multi)
	accept, source := model.AcceptThreshold(), AcceptFromTraining
	if s.validation != nil {
		seen, err := judge.all(ctx, "validate", s.validation, cfg.Progress)
		if err != nil {
			return nil, err
		}
		accept, source = acceptOn(seen), AcceptFromValidation
	}
	r.operate(verdicts, accept, source)
	if err := r.time(ctx, judge.classify, texts(s.test), cfg.Progress); err != nil {
		return nil, err
	}
	return r, nil
}

// trainRuns is how often a model is trained to say how long that takes: the
// middle one counts, as the machine has other things to do.
const trainRuns = 3

func trainTimed(c lexical.Corpus) (*lexical.Model, time.Duration) {
	var model *lexical.Model
	took := make([]time.Duration, trainRuns)
	for i := range took {
		runtime.GC() // what was there before is not the training's
		start := time.Now()
		model = lexical.Train(c)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return model, took[trainRuns/2]
}

// acceptOn is the confidence from which a set is answered with the precision
// that is wanted; +Inf when there is none.
func acceptOn(verdicts []verdict) float64 {
	best, ok := widest(riskCoverage(claims(verdicts)), wantedPrecision)
	if !ok || best.Threshold < 0 {
		return math.Inf(1)
	}
	return best.Threshold
}

func texts(rows []utterance) []string {
	list := make([]string, len(rows))
	for i := range rows {
		list[i] = rows[i].Text
	}
	return list
}

// progressEvery is how many rows pass between two words about progress, and two
// looks at whether to go on.
const progressEvery = 200

// each calls do for every number below n, until ctx ends.
func each(ctx context.Context, stage string, n int, progress func(string, int, int), do func(i int)) error {
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

// time says how long classifying one text takes and what it allocates. The
// texts have been classified before, so that nothing is met for the first time.
func (r *BenchReport) time(ctx context.Context, classify func(text string), list []string, progress func(string, int, int)) error {
	took := make([]int64, len(list))
	var before, after runtime.MemStats
	runtime.GC()
	// Nobody is told of progress meanwhile: that would allocate.
	progress("time", 0, len(list))
	runtime.ReadMemStats(&before)
	err := each(ctx, "time", len(list), func(string, int, int) {}, func(i int) {
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
	r.ClassifyP50 = figure(microseconds(quantile(took, 0.50)))
	r.ClassifyP99 = figure(microseconds(quantile(took, 0.99)))
	allocs := float64(after.Mallocs-before.Mallocs) / float64(len(list))
	r.AllocsPerOp = figure(math.Round(allocs*10) / 10)
	return nil
}

func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 1e2 }

func microseconds(ns int64) float64 { return math.Round(float64(ns)/10) / 1e2 }
