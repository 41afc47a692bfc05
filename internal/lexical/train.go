package lexical

import (
	"context"
	"maps"
	"slices"

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
func Train(c Corpus) *Model { return train(c, noStorage{}, nil) }

// TrainContext is Train until ctx ends: it then returns the error of ctx soon.
func TrainContext(ctx context.Context, c Corpus) (*Model, error) {
	m := train(c, noStorage{}, func() bool { return ctx.Err() != nil })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// train trains a model. If stopped, which may be nil, returns true, the training ends early, and
// the model is useless.
func train(c Corpus, storage Storage, stopped func() bool) *Model {
	docs, domains := mergeIntents(c.Intents), sortedUnique(c.Domains)
	t := &indexBuilder{
		model: &Model{
			wordIndex: wordIndex{words: map[string]int32{}}, domainIndex: domainIndex{domainWords: map[string]int32{}, stopNames: map[string]int32{}},
			common: newCommonHashes(),
		},
		tokens: newTokenizer(), spellings: map[string]int{}, written: map[string]int{},
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
			t.model.synonyms, t.model.phrases = newSynonyms(t.spellings, t.intentWords)
			t.model.writtenAs = t.writtenForms()
			t.model.notFor = t.newNotForWords(docs)
			t.model.verbatim = t.verbatimTexts(docs)
		},
	)
	isNew := state == nil
	if isNew {
		s, reported := trainStatistical(docs, domains, c.Pace, stopped)
		state = &learnedState{statistical: s, report: newReport(docs, reported)}
	}
	t.model.statistical, t.model.report = state.statistical, state.report
	t.model.statistical.common = t.model.common
	if isNew {
		state.learned, state.domainWords = t.learnDomains(docs)
		storage.Store(key, state.encode)
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
// predictions of the report too. pace is that of the corpus, stopped of train.
func trainStatistical(docs []IntentDoc, domains []string, pace, stopped func() bool) (*statisticalModel, []heldOutPrediction) {
	families := agentFamilies(docs)
	d := newTrainingSet(trainingTexts(docs, families.of), families)
	d.pace, d.stopped = pace, stopped
	w := newTokenizer()
	for _, name := range domains {
		if IsStopName(name) {
			continue
		}
		for w.reset(splitCamel(name)); w.next(); {
			d.flagWord(string(w.word), flagDomain)
		}
	}
	s := &statisticalModel{declared: newDeclaredTexts(d)}
	whole, trials, reported := crossFit(d, &s.declared)
	s.linear = whole.quantize(d.table)
	s.linear.prepare()
	size := newCorpusSize(d)
	s.calibration = fitCalibration(trials, size)
	s.rejectThreshold, s.acceptThreshold = chooseThresholds(&s.calibration, trials, size)
	return s, reported
}

func sortedUnique(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
