package lexical

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// A small vocabulary makes overlaps between texts and corpora likely.
var propertyWords = []string{
	"review", "code", "cost", "Azure", "the", "of", "and", "data", "revisão", "custo", "审查代码", "查", "的",
	"C++", "app.py", "e.g.", "```", "\n", ";", "queries", "fooBar", "a_b", "🎉", "\xff",
}

func drawText(t *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(propertyWords), 0, 12).Draw(t, label), " ")
}

func drawCorpus(t *rapid.T) Corpus {
	name := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(propertyWords), 1, 3).Draw(t, "name"), "_")
	})
	text := rapid.Custom(func(t *rapid.T) string { return drawText(t, "text") })
	doc := rapid.Custom(func(t *rapid.T) IntentDoc {
		return IntentDoc{
			Name:     name.Draw(t, "intent"),
			Examples: rapid.SliceOfN(text, 0, 4).Draw(t, "examples"),
			Keywords: rapid.SliceOfN(name, 0, 2).Draw(t, "keywords"),
		}
	})
	return Corpus{
		Intents: rapid.SliceOfN(doc, 0, 5).Draw(t, "intents"),
		Domains: rapid.SliceOfN(name, 0, 5).Draw(t, "domains"),
	}
}

// TestClassify_WellFormed checks any corpus and any bytes.
func TestClassify_WellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Train(drawCorpus(t))
		text := rapid.OneOf(rapid.Custom(func(t *rapid.T) string { return drawText(t, "words") }), rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		checkPrediction(t, m, text)
		checkSegments(t, m, text)
	})
}

// TestTrain_EndsEarly checks that a cancelled training ends soon, and without a panic.
func TestTrain_EndsEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		corpus, calls := drawCorpus(t), rapid.IntRange(0, 200).Draw(t, "calls")
		corpus.Pace = func() bool {
			calls--
			return calls > 0
		}
		Train(corpus).Classify(drawText(t, "text"))
		if calls < -100 { // once in each of its parts
			t.Errorf("got %d calls after the training was given up", -calls)
		}
	})
}

// A large model without any step of training has no weights to choose between.
func TestLinearModel_QuantizesUntrainedWeights(t *testing.T) {
	l := &linearModel{weight: make([]float32, maxWeights+1), idfWeights: idfWeights{idf: []float32{1}}, start: []int32{0, maxWeights + 1}}
	if got := l.minKeptChange(); got != 0 {
		t.Errorf("got %v, want 0", got)
	}
}

func TestTrainContext_EndsWithContext(t *testing.T) {
	corpus := Corpus{}
	for i := range 20 {
		d := IntentDoc{Name: fmt.Sprintf("intent_%d", i)}
		for k := range 20 {
			d.Examples = append(d.Examples, fmt.Sprintf("request %d about subject %d of kind %d", k, i, k*i))
		}
		corpus.Intents = append(corpus.Intents, d)
	}
	want := Train(corpus).Classify("subject 7")
	for _, calls := range []int64{0, 1, 100, 3000} {
		var left atomic.Int64
		left.Store(calls)
		train(corpus, noStorage{}, func() bool { return left.Add(-1) < 0 }, newTrainingProgress(t.Context()))
		if left.Load() < -100 { // once in each of its parts
			t.Errorf("stopped after %d calls: got %d more calls, want the training ended", calls, -left.Load())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := TrainContext(ctx, corpus); m != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got model %v, %v, want no model and context.Canceled", m != nil, err)
	}
	m, err := TrainContext(t.Context(), corpus)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, m.Classify("subject 7")); diff != "" {
		t.Errorf("prediction of a model that was trained to the end (-want +got):\n%s", diff)
	}
}

// A training that is cancelled in its middle ends without another step, and is not stored.
func TestTrainStored_EndsWithContext(t *testing.T) {
	const cancelAt = 30
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reports []int
	ctx = WithProgress(ctx, func(done, _ int) {
		if reports = append(reports, done); done == cancelAt {
			cancel()
		}
	})
	s := &memoryStorage{data: map[string][]byte{}}
	if m, err := TrainStored(ctx, trainedCorpus(), s); m != nil || !errors.Is(err, context.Canceled) || len(s.data) > 0 {
		t.Errorf("got model %v, %v and %d models stored, want no model, context.Canceled and none stored", m != nil, err, len(s.data))
	}
	after := reports[slices.Index(reports, cancelAt)+1:]
	if len(after) > 3 || after[len(after)-1] != 100 { // one of a model that is fitted at the same time, and the end
		t.Errorf("got reports %d after the training was cancelled, want the end soon", after)
	}
}

func TestWithProgress_ReportsEachHundredth(t *testing.T) {
	var got, want []int
	for n := range 100 {
		want = append(want, n+1)
	}
	ctx := WithProgress(t.Context(), func(done, total int) {
		if got = append(got, done); total != 100 {
			t.Errorf("got total %d, want 100", total)
		}
	})
	s := &memoryStorage{data: map[string][]byte{}}
	for range 2 { // the second time, the model is loaded
		if _, err := TrainStored(ctx, trainedCorpus(), s); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

func checkPrediction(t failer, m *Model, text string) {
	t.Helper()
	p := m.Classify(text)
	if diff := cmp.Diff(p, m.Classify(text)); diff != "" {
		t.Errorf("%q: got two predictions (-first +second):\n%s", text, diff)
	}
	if p.Confidence < 0 || p.Confidence > 1 {
		t.Errorf("%q: got confidence %v, want 0 to 1", text, p.Confidence)
	}
	if p.Intent != contract.Unknown && p.Intent != p.BestIntent {
		t.Errorf("%q: got %s, want the best, %s", text, p.Intent, p.BestIntent)
	}
	if len(p.Domains) > contract.MaxDomains {
		t.Errorf("%q: got domains %q, want at most %d", text, p.Domains, contract.MaxDomains)
	}
	best, sum := p.Confidence, p.Confidence
	for _, a := range p.Alternatives {
		if a.Intent != p.BestIntent {
			sum += a.Confidence
		}
		if a.Confidence > best || a.Confidence <= 0 || a.Intent == p.Intent {
			t.Errorf("%q: got alternatives %v, want others than %s, falling from %v", text, p.Alternatives, p.Intent, p.Confidence)
		}
		best = a.Confidence
	}
	if len(p.Alternatives) > maxAlternatives || sum > 1.001 {
		t.Errorf("%q: got %v beside %v, want at most %d, together at most 1", text, p.Alternatives, p.Confidence, maxAlternatives)
	}
}

func checkSegments(t failer, m *Model, text string) {
	t.Helper()
	rest := text
	for _, part := range m.SplitClauses(text) {
		if strings.TrimSpace(part) == "" {
			t.Errorf("%q: got the empty segment %q", text, part)
		}
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("%q: got segment %q, want a part of %q", text, part, rest)
		}
		rest = after
	}
}

// TestTrain_IgnoresOrder checks that the result does not depend on the order of the corpus.
func TestTrain_IgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCorpus(t)
		text := drawText(t, "prompt")
		want := Train(c).Classify(text)
		shuffled := Corpus{
			Intents: rapid.Permutation(c.Intents).Draw(t, "intents shuffled"),
			Domains: rapid.Permutation(c.Domains).Draw(t, "domains shuffled"),
		}
		for i := range shuffled.Intents {
			d := &shuffled.Intents[i]
			d.Examples = rapid.Permutation(d.Examples).Draw(t, "examples shuffled")
			d.Keywords = rapid.Permutation(d.Keywords).Draw(t, "keywords shuffled")
		}
		if diff := cmp.Diff(want, Train(shuffled).Classify(text)); diff != "" {
			t.Errorf("prediction (-in order +shuffled):\n%s", diff)
		}
	})
}

// TestEvidence_GrowsWithName checks that adding an intent's full name does not lower the evidence
// for it.
func TestEvidence_GrowsWithName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCorpus(t)
		if len(c.Intents) == 0 {
			return
		}
		m := Train(c)
		text := drawText(t, "prompt")
		name := rapid.SampledFrom(c.Intents).Draw(t, "named").Name
		words := token.NewScanner()
		if words.Reset(name); strings.Contains(name, "`") || !words.Next() {
			return // it would open a block, or has no effect
		}
		before := overlapIn(m, text, name)
		for _, longer := range []string{name + " " + text, text + " " + name} {
			if after := overlapIn(m, longer, name); after < before {
				t.Errorf("%q: got %v in %s, want at least the %v of %q", longer, after, name, before, text)
			}
		}
	})
}

// overlapIn returns the greatest share of a declared text of an intent that the text contains.
func overlapIn(m *Model, text, intent string) float64 {
	return overlapsOf(m, text, func(r *textAnalysis) []int32 { return r.candidatePatterns() })[intent]
}

// TestIndex_FindsEveryRelevantPattern compares the postings with a search over
// all patterns.
func TestIndex_FindsEveryRelevantPattern(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Train(drawCorpus(t))
		text := drawText(t, "prompt")
		all := func(*textAnalysis) []int32 {
			list := make([]int32, len(m.patterns))
			for i := range list {
				list[i] = int32(i)
			}
			return list
		}
		want := overlapsOf(m, text, all)
		got := overlapsOf(m, text, func(r *textAnalysis) []int32 { return r.candidatePatterns() })
		for intent, confidence := range want {
			if confidence > minCover+0.001 && got[intent] != confidence {
				t.Errorf("%q, %s: got %v, want %v", text, intent, got[intent], confidence)
			}
		}
	})
}

// overlapsOf returns the share of each intent's best pattern that the text
// contains.
func overlapsOf(m *Model, text string, patterns func(*textAnalysis) []int32) map[string]float64 {
	r := m.analyzeText(text)
	shares := map[string]float64{}
	for _, i := range patterns(r) {
		p := &m.patterns[i]
		if o := r.measureOverlap(p); o.weight > 0 && (p.kind != patternKeyword || o.words == len(p.words)) {
			shares[m.intents[p.intent]] = max(shares[m.intents[p.intent]], o.weight/p.weight)
		}
	}
	return shares
}

// TestTextAnalysis_GenerationWrapsAround checks that no old entries are reused after an overflow of
// the generation counter.
func TestTextAnalysis_GenerationWrapsAround(t *testing.T) {
	m := Train(Corpus{Intents: []IntentDoc{{Name: "code_review"}}, Domains: []string{"python"}})
	r := m.analyzeText("code review of python")
	r.generation = ^uint32(0)
	for _, table := range [][]uint32{r.wordSeen, r.patternSeen, r.domainWordSeen} {
		for i := range table {
			table[i] = 1
		}
	}
	r.resetState()
	for _, table := range [][]uint32{r.wordSeen, r.patternSeen, r.domainWordSeen} {
		if slices.Contains(table, r.generation) {
			t.Fatalf("got a mark of turn %d in %v, want none", r.generation, table)
		}
	}
}
