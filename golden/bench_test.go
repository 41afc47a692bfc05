package golden

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
)

func benchFile(name string) string { return filepath.Join("testdata", "bench", name) }

func runBench(t *testing.T, cfg BenchConfig) *BenchReport {
	t.Helper()
	r, err := RunBench(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkFigure checks the value of a figure.
func checkFigure(t *testing.T, name string, got *float64, want float64) {
	t.Helper()
	switch {
	case got == nil:
		t.Errorf("%s: got null, want %v", name, want)
	case *got < want-1e-6 || *got > want+1e-6:
		t.Errorf("%s: got %v, want %v", name, *got, want)
	}
}

func checkAbsent(t *testing.T, figures map[string]*float64) {
	t.Helper()
	for name, got := range figures {
		if got != nil {
			t.Errorf("%s: got %v, want null", name, *got)
		}
	}
}

func TestRunBench(t *testing.T) {
	var stages []string
	r := runBench(t, BenchConfig{
		Train: benchFile("train.tsv"), Test: benchFile("test.tsv"), OutOfScope: benchFile("oos.tsv"),
		Progress: func(stage string, done, total int) {
			if done == total {
				stages = append(stages, stage)
			}
		},
	})
	// Three of four intents are known and distinguishable; pizza is unknown.
	checkFigure(t, "accuracy", r.Accuracy, 0.75)
	if r.N != 4 || r.OutOfScopeN != 3 || r.Unseen != 1 || r.Intents != 3 || r.Examples != 15 {
		t.Errorf("got n %d, oos %d, unseen %d, %d intents, %d examples, want 4, 3, 1, 3, 15", r.N, r.OutOfScopeN, r.Unseen, r.Intents, r.Examples)
	}
	for name, got := range map[string]*float64{
		"in_scope_accuracy": r.InScopeAccuracy, "oos_recall": r.OutOfScopeRecall,
		"domain_accuracy": r.DomainAccuracy, "agent_accuracy": r.AgentAccuracy, "oos_auroc": r.OutOfScopeAUROC,
		"ece": r.ECE, "ece_floor": r.ECEFloor, "coverage": r.Coverage, "hindsight": r.HindsightCoverage,
		"train_ms": r.TrainMS, "p50": r.ClassifyP50, "p99": r.ClassifyP99, "allocs": r.AllocsPerOp,
	} {
		if got == nil {
			t.Errorf("%s: got null", name)
		}
	}
	checkAbsent(t, map[string]*float64{"exact_set_accuracy": r.ExactSetAccuracy, "top5_accuracy": r.Top5Accuracy})
	if len(r.Confusions) != 1 || r.Confusions[0].Label != "order_food" {
		t.Errorf("got confusions %v, want the unknown label", r.Confusions)
	}
	if diff := cmp.Diff([]string{"train", "classify", "time"}, stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// TestRunBench_Figures compares the figures with manually computed ones.
func TestRunBench_Figures(t *testing.T) {
	registry, err := newBenchRegistry([]labelledRow{{"x", "a", "d"}, {"y", "*", "d"}})
	if err != nil {
		t.Fatal(err)
	}
	row := func(intent string) *labelledRow { return &labelledRow{Text: "t", Intent: intent, Domain: "d"} }
	right := func(confidence float64, claimed bool) rowPrediction {
		return rowPrediction{
			row: row("a"), best: "a", confidence: confidence, claimed: claimed,
			correct: true, bestCorrect: true, domainCorrect: true, agentCorrect: claimed, labelKnown: true, domainKnown: true,
		}
	}
	star, _ := registry.intents.lookup("*")
	predictions := []rowPrediction{
		right(0.99, true), right(0.9, true), right(0.4, false),
		{row: row("a"), best: star, confidence: 0.8, claimed: true, labelKnown: true, domainKnown: true},
		{row: row("z"), best: star, confidence: 0.3, domainKnown: true},
		{row: row(outOfScope), best: "a", confidence: 0.85, claimed: true},
		{row: row(outOfScope), best: "a", confidence: 0.2},
		{row: row(outOfScope), confidence: 0},
	}
	r := &BenchReport{N: 5, OutOfScopeN: 3}
	r.addPredictions(predictions, registry, false)
	r.addOperatingPoint(predictions, 0.84, AcceptFromTraining)
	checkFigure(t, "accuracy", r.Accuracy, 3.0/5)
	checkFigure(t, "domain_accuracy", r.DomainAccuracy, 3.0/5)
	checkFigure(t, "agent_accuracy", r.AgentAccuracy, 2.0/5)
	checkFigure(t, "in_scope_accuracy", r.InScopeAccuracy, 2.0/5)
	checkFigure(t, "oos_recall", r.OutOfScopeRecall, 2.0/3)
	checkFigure(t, "oos_auroc", r.OutOfScopeAUROC, (3.0+3+2+2+2)/15) // pairs with a higher confidence in scope, per row
	checkFigure(t, "coverage", r.Coverage, 3.0/8)
	checkFigure(t, "achieved", r.AchievedPrecision, 2.0/3)
	checkFigure(t, "hindsight", r.HindsightCoverage, 2.0/8)
	checkFigure(t, "ece", r.ECE, (0.01+0.1+0.6+0.8+0.3)/5) // each row in its own bin
	if diff := cmp.Diff([]ConfusedPair{{"a", "*", 1}, {"z", "*", 1}}, r.Confusions); diff != "" {
		t.Errorf("confusions (-want +got):\n%s", diff)
	}
	if r.Unseen != 1 {
		t.Errorf("got %d unseen, want 1", r.Unseen)
	}

	r.addOperatingPoint(predictions, math.Inf(1), AcceptFromTraining)
	checkFigure(t, "coverage of a model that accepts nothing", r.Coverage, 0)
	checkAbsent(t, map[string]*float64{"achieved": r.AchievedPrecision, "accept": r.Accept})
	r.addOperatingPoint(predictions, 0, AcceptFromTraining) // rows without a claim are not accepted either
	checkFigure(t, "coverage of all that is claimed", r.Coverage, 4.0/8)
	r.addOperatingPoint(predictions[4:5], 0, AcceptFromTraining)
	checkFigure(t, "hindsight where nothing is claimed", r.HindsightCoverage, 0)
}

func TestAcceptThreshold(t *testing.T) {
	in := labelledRow{Intent: "a"}
	predictions := []rowPrediction{
		{row: &in, confidence: 0.9, claimed: true, correct: true},
		{row: &in, confidence: 0.7, claimed: true, correct: true},
		{row: &in, confidence: 0.6, claimed: true},
		{row: &in, confidence: 0.5},
	}
	if got := acceptThreshold(predictions); got != 0.7 {
		t.Errorf("got %v, want 0.7, because half of the rows below are wrong", got)
	}
	if got := acceptThreshold(predictions[2:]); !math.IsInf(got, 1) {
		t.Errorf("got %v for wrong answers, want none accepted", got)
	}
}

// TestRunBench_IsDeterministic compares two runs, except for times.
func TestRunBench_IsDeterministic(t *testing.T) {
	cfg := BenchConfig{Train: benchFile("train.tsv"), Test: benchFile("test.tsv"), OutOfScope: benchFile("oos.tsv"), Validation: benchFile("test.tsv")}
	times := cmpopts.IgnoreFields(BenchReport{}, "TrainMS", "ClassifyP50", "ClassifyP99", "AllocsPerOp")
	first := runBench(t, cfg)
	if diff := cmp.Diff(first, runBench(t, cfg), times); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	if first.AcceptSource != AcceptFromValidation {
		t.Errorf("got the threshold from %q, want the validation rows", first.AcceptSource)
	}
}

func TestRunBench_WithoutOutOfScope(t *testing.T) {
	dir := t.TempDir()
	test := filepath.Join(dir, "test.tsv")
	writeFile(t, test, "switch on the kitchen lamp\tlights_on\tanother\n")
	r := runBench(t, BenchConfig{Train: benchFile("train.tsv"), Test: test})
	checkFigure(t, "accuracy", r.Accuracy, 1)
	checkAbsent(t, map[string]*float64{
		"oos_recall": r.OutOfScopeRecall, "oos_auroc": r.OutOfScopeAUROC,
		"domain_accuracy": r.DomainAccuracy, "agent_accuracy": r.AgentAccuracy, // no row's domain is the registry's
	})
	data, err := strictjson.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"oos_auroc":null`, `"domain_accuracy":null`, `"confusions":[]`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("got %s, want it to contain %s", data, want)
		}
	}
	if strings.Contains(string(data), "exact_set") {
		t.Errorf("got %s, want no exact_set_accuracy without --multi", data)
	}
}

// fields are the JSON names of a report's figures.
func TestRunBench_Fields(t *testing.T) {
	data, err := strictjson.Marshal(&BenchReport{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"n", "accuracy", "domain_accuracy", "agent_accuracy", "in_scope_accuracy", "oos_recall", "oos_auroc", "ece", "ece_floor",
		"coverage_at_98_precision", "achieved_precision", "train_ms", "classify_us_p50", "classify_us_p99", "allocs_per_op", "model_bytes",
	} {
		if !strings.Contains(string(data), `"`+name+`":`) {
			t.Errorf("got no %s in %s", name, data)
		}
	}
}

func TestRunBench_Multi(t *testing.T) {
	r := runBench(t, BenchConfig{Train: benchFile("train.tsv"), Test: benchFile("multi.tsv"), Multi: true})
	if r.ExactSetAccuracy == nil || *r.ExactSetAccuracy > 2.0/3+1e-6 {
		t.Errorf("got exact_set_accuracy %v, want at most two of three, because one row is unknown", r.ExactSetAccuracy)
	}
	checkAbsent(t, map[string]*float64{"domain_accuracy": r.DomainAccuracy, "agent_accuracy": r.AgentAccuracy})
	if r.N != 3 || r.Unseen != 1 {
		t.Errorf("got n %d, unseen %d, want 3 and 1", r.N, r.Unseen)
	}
	if r.ECE == nil || r.ECEFloor == nil || r.ExactSetECE == nil || r.ExactSetECEFloor == nil {
		t.Errorf("got %+v, want the calibration of intents and of sets", r)
	}
}

// TestRunBench_MultiCalibration checks that each intent is compared with the labels separately, and
// the set as a whole.
func TestRunBench_MultiCalibration(t *testing.T) {
	registry, err := newBenchRegistry([]labelledRow{{"x", "a", "d"}, {"y", "b", "d"}})
	if err != nil {
		t.Fatal(err)
	}
	row := &labelledRow{Text: "t", Intent: "a#b", Domain: "d"}
	predictions := []rowPrediction{
		{row: row, confidence: 0.72, correct: true, bestCorrect: true, claimed: true, parts: []scoredRow{{Confidence: 0.9, Correct: true}, {Confidence: 0.8, Correct: true}}},
		{row: row, confidence: 0.99, bestCorrect: true, claimed: true, parts: []scoredRow{{Confidence: 0.99, Correct: true}}}, // the other one was missed
		{row: &labelledRow{Intent: outOfScope}, confidence: 0.5},
	}
	r := &BenchReport{N: 2, OutOfScopeN: 1}
	r.addPredictions(predictions, registry, true)
	checkFigure(t, "ece", r.ECE, (0.1+0.2+0.01)/3)
	checkFigure(t, "exact_set_ece", r.ExactSetECE, (0.28+0.99)/2)
}

// TestPredictSet_Parts checks the intents that a router would dispatch, each with its confidence.
func TestPredictSet_Parts(t *testing.T) {
	train, err := readLabelledRows(benchFile("train.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := newBenchRegistry(train)
	if err != nil {
		t.Fatal(err)
	}
	j, err := newRowClassifier(registry, lexical.Train(classifier.BuildCorpus(registry.snapshot)), true)
	if err != nil {
		t.Fatal(err)
	}
	two := "turn on the kitchen lights and then play some jazz"
	clf := j.classifyWhole(t.Context(), two)
	if len(clf.Subtasks) != 2 {
		t.Fatalf("got %+v, want two subtasks", clf)
	}
	v := j.predictSet(t.Context(), &labelledRow{two, "lights_on", "d"})
	least := 1.0
	right := 0
	for _, p := range v.parts {
		least = min(least, p.Confidence)
		right += countTrue(p.Correct)
	}
	if len(v.parts) != 2 || right != 1 || least <= 0 || least < v.confidence {
		t.Errorf("got %+v for a prompt with confidence %v, want two parts, each with at least this confidence, one of them correct", v.parts, v.confidence)
	}
	whole := j.predictSet(t.Context(), &labelledRow{"play some jazz", "play music", "d"})
	if len(whole.parts) != 1 || !whole.parts[0].Correct || whole.parts[0].Confidence != whole.confidence {
		t.Errorf("got %+v, want one intent", whole.parts)
	}
}

func TestRunBench_Tools(t *testing.T) {
	r := runBench(t, BenchConfig{Tools: benchFile("tools.jsonl"), Test: benchFile("queries.tsv"), OutOfScope: benchFile("oos.tsv")})
	checkFigure(t, "accuracy", r.Accuracy, 0.75)
	checkFigure(t, "top5_accuracy", r.Top5Accuracy, 0.75)
	if r.N != 4 || r.Unseen != 1 || r.Intents != 3 || r.OutOfScopeN != 2 || r.OutOfScopeAUROC == nil {
		t.Errorf("got %+v, want the figures of the tools", r)
	}
	checkAbsent(t, map[string]*float64{"ece": r.ECE, "coverage": r.Coverage, "in_scope_accuracy": r.InScopeAccuracy})
}

func TestRunBench_WithinRows(t *testing.T) {
	r := runBench(t, BenchConfig{Tools: benchFile("queries.jsonl")})
	checkFigure(t, "accuracy", r.Accuracy, 1)
	if r.N != 1 || r.OutOfScopeN != 1 || r.ClassifyP50 == nil {
		t.Errorf("got %+v, want the figures of the rows", r)
	}
}

func TestRunBench_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := RunBench(ctx, BenchConfig{
		Train: benchFile("train.tsv"), Test: benchFile("test.tsv"),
		Progress: func(stage string, _, _ int) {
			if stage == "train" {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

func TestBenchConfig_Validate(t *testing.T) {
	tests := []struct {
		name string
		cfg  BenchConfig
		want string
	}{
		{"labelled", BenchConfig{Train: "t", Test: "s"}, ""},
		{"everything", BenchConfig{Train: "t", Test: "s", OutOfScope: "o", Validation: "v", Multi: true}, ""},
		{"tools", BenchConfig{Tools: "j", Test: "s", OutOfScope: "o"}, ""},
		{"within rows", BenchConfig{Tools: "j"}, ""},
		{"nothing", BenchConfig{}, "--train T.tsv --test S.tsv"},
		{"no test", BenchConfig{Train: "t"}, "--test S.tsv"},
		{"tools and train", BenchConfig{Tools: "j", Train: "t", Test: "s"}, "--tools ranks by description alone"},
		{"tools and multi", BenchConfig{Tools: "j", Test: "s", Multi: true}, "--tools ranks by description alone"},
		{"within rows and oos", BenchConfig{Tools: "j", OutOfScope: "o"}, "--oos needs --test"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Validate()
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestRunBench_PublicSets measures the available data sets against minimum values. The figures are
// in docs/quality.md.
func TestRunBench_PublicSets(t *testing.T) {
	testkit.SkipWithRace(t)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	data := testkit.Shared(t, "data") // not in a subtest, because Shared skips the test it is given
	tests := []struct {
		name     string
		cfg      func() BenchConfig
		accuracy float64
	}{
		{"CLINC150, 10 examples for each intent", func() BenchConfig {
			return BenchConfig{Train: filepath.Join(data, "clinc150", "train_10shot.tsv"), Test: filepath.Join(data, "clinc150", "val.tsv"), OutOfScope: filepath.Join(data, "clinc150", "oos_val.tsv")}
		}, 0.5},
		{"SNIPS", func() BenchConfig {
			return BenchConfig{Train: filepath.Join(data, "snips", "val.tsv"), Test: filepath.Join(data, "snips", "test.tsv")}
		}, 0.7},
		{"BFCL", func() BenchConfig { return BenchConfig{Tools: filepath.Join(data, "bfcl", "multiple.jsonl")} }, 0.9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := runBench(t, tt.cfg())
			if r.Accuracy == nil || *r.Accuracy < tt.accuracy {
				t.Errorf("got %v, want at least %v", *r.Accuracy, tt.accuracy)
			}
			t.Logf("accuracy %.3f of %d", *r.Accuracy, r.N)
		})
	}
}
