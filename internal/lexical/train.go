package lexical

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/run"
)

// Corpus contains the training data of a registry. Its order does not matter;
// intents of the same name are merged.
type Corpus struct {
	Intents []IntentDoc
	Domains []string
	Aliases map[string][]string // other words for domains, by domain
	// Pace, if set, is called often by the training, which then uses one processor: it
	// may wait, so that other work gets its share. If it returns false, the training ends
	// early, and the model is useless.
	Pace func() bool
}

// IntentDoc is the training data of one intent, collected from the agents that
// serve it.
type IntentDoc struct {
	Name     string
	Examples []string // utterances that ask for the intent
	Keywords []string // of the agents that serve it
	Agents   []string // their ids
	// Descriptions, NotFor and Domains are those of the agents that serve the
	// intent.
	Descriptions []string
	NotFor       []string
	Domains      []string
}

// Train builds the model of a corpus. It takes a fraction of a second for
// 15,000 examples. The model refers to the strings of the corpus.
func Train(c Corpus) *Model {
	return train(c, noStorage{}, neverStopped, newTrainingProgress(context.Background()))
}

func neverStopped() bool { return false }

// TrainContext is Train until ctx ends: it then returns the error of ctx soon.
func TrainContext(ctx context.Context, c Corpus) (*Model, error) {
	return TrainStored(ctx, c, noStorage{})
}

type progressKey struct{}

// WithProgress returns a context with which TrainContext and TrainStored report their progress
// in hundredths, one call at a time. The last call has done == total, even if the training ends
// early. Loading a model reports nothing.
func WithProgress(ctx context.Context, report func(done, total int)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// trainingProgress counts the steps of the models that crossFit fits, in parallel.
type trainingProgress struct {
	report func(done, total int) // may be nil

	mu          sync.Mutex
	done, total int // hundredths of all models
	reported    int // hundredths of the training
}

func newTrainingProgress(ctx context.Context) *trainingProgress {
	report, _ := ctx.Value(progressKey{}).(func(done, total int))
	return &trainingProgress{report: report, total: 100}
}

// setModels sets the number of models, before the first step.
func (p *trainingProgress) setModels(n int) { p.total = 100 * n }

// addSteps adds hundredths of the steps of one model.
func (p *trainingProgress) addSteps(hundredths int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += hundredths
	if n := 100 * p.done / p.total; n > p.reported && n < 100 {
		p.reported = n
		p.callReport()
	}
}

// finish reports the end of the training.
func (p *trainingProgress) finish() {
	p.reported = 100
	p.callReport()
}

func (p *trainingProgress) callReport() {
	if p.report != nil {
		p.report(p.reported, 100)
	}
}

// train trains a model. If stopped returns true, the training ends early, and the model is
// useless.
func train(c Corpus, storage Storage, stopped func() bool, progress *trainingProgress) *Model {
	docs, domains := mergeIntents(c.Intents), sortedUnique(c.Domains)
	t := &indexBuilder{
		model: &Model{
			wordIndex: wordIndex{words: map[string]int32{}}, domainIndex: domainIndex{domainWords: map[string]int32{}, stopNames: map[string]int32{}},
			common: feature.NewCommonWords(),
		},
		tokens: token.NewScanner(), spellings: map[string]int{}, written: map[string]int{},
	}
	key := corpusKey(docs, domains, c.Aliases)
	var state *learnedState
	c.runTogether(
		func() { state = decodeLearned(storage.Load(key), len(docs)) },
		func() { t.addCorpus(&c, docs, domains) },
	)
	c.runTogether(
		func() { t.model.typos = newTypoIndex(t.spellings) },
		func() {
			t.computeWeights()
			t.buildPostings()
			t.countFamilies(docs)
			t.model.synonyms, t.model.phrases = synonyms.New(t.spellings, t.intentWords)
			t.model.writtenAs = t.writtenForms()
			t.model.notFor = t.newNotForWords(docs)
			t.model.verbatim = t.verbatimTexts(docs)
		},
	)
	isNew := state == nil
	if isNew {
		defer progress.finish()
		s, reported := trainStatistical(docs, domains, trainingPace{c.Pace, stopped, progress})
		state = &learnedState{statistical: s, report: newReport(docs, reported)}
	}
	t.model.statistical, t.model.report = state.statistical, state.report
	t.model.statistical.common = t.model.common
	if isNew && !stopped() {
		state.learned, state.domainWords = t.learnDomains(docs)
		if !stopped() { // read last: the steps of a model that is stored are complete
			storage.Store(key, state.encode)
		}
	}
	t.model.learned = state.learned
	for _, w := range state.domainWords {
		t.model.addDomainName(domainName{domain: w.domain, words: []int32{t.model.addDomainWord([]byte(w.form))}, evidence: evidenceLearned})
	}
	return t.model
}

// runTogether calls both functions at the same time, or one after the other if the
// training uses one processor.
func (c *Corpus) runTogether(a, b func()) {
	workers := 2
	if c.Pace != nil {
		workers = 1
	}
	calls := [2]func(){a, b}
	run.ForEach(context.Background(), workers, len(calls), func(_ context.Context, i int) { calls[i]() })
}

// mergeIntents sorts the documents by name, and merges documents of the same
// name.
func mergeIntents(docs []IntentDoc) []IntentDoc {
	byName := make(map[string]IntentDoc, len(docs))
	for _, d := range docs {
		have := byName[d.Name]
		byName[d.Name] = IntentDoc{
			Name:         d.Name,
			Examples:     slices.Concat(have.Examples, d.Examples),
			Keywords:     slices.Concat(have.Keywords, d.Keywords),
			Agents:       slices.Concat(have.Agents, d.Agents),
			Descriptions: slices.Concat(have.Descriptions, d.Descriptions),
			NotFor:       slices.Concat(have.NotFor, d.NotFor),
			Domains:      slices.Concat(have.Domains, d.Domains),
		}
	}
	merged := make([]IntentDoc, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		merged = append(merged, byName[name])
	}
	return merged
}

// trainStatistical trains on documents sorted by name. It returns the held-out
// predictions of the report too.
func trainStatistical(docs []IntentDoc, domains []string, pace trainingPace) (*statisticalModel, []heldOutPrediction) {
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	d.trainingPace = pace
	w := token.NewScanner()
	for _, name := range domains {
		if IsStopName(name) {
			continue
		}
		for w.Reset(token.SplitCamel(name)); w.Next(); {
			d.flagWord(string(w.Word), flagDomain)
		}
	}
	s := &statisticalModel{declared: newDeclaredTexts(d)}
	whole, heldOut, reported := crossFit(d, &s.declared)
	s.linear = whole.quantize(d.table)
	s.linear.prepare()
	size, trials := calibration.NewCorpusSize(d.examplesPerIntent(), d.classes, d.vectorLength), trialsOf(heldOut)
	s.calibration = calibration.Fit(trials, size)
	s.rejectThreshold, s.acceptThreshold = chooseThresholds(&s.calibration, trials, size)
	return s, reported
}

func sortedUnique(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
