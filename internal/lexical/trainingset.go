package lexical

import (
	"context"
	"runtime"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/run"
)

// trainingSet is the corpus as training input: numbered classes, numbered
// features, and the features of each sample.
type trainingSet struct {
	table    featureTable
	flags    []featureFlags // by feature
	classes  int
	families classFamilies
	samples  []trainingSample
	// vectorLength is the length of the vectors of samples; 0 if vectors are no features.
	vectorLength float32
	pace         func() bool // see Corpus; may be nil
}

// examplesPerIntent returns the mean number of examples of an intent.
func (d *trainingSet) examplesPerIntent() float64 {
	examples := 0
	for i := range d.samples {
		if d.samples[i].kind == kindExample {
			examples++
		}
	}
	return float64(examples) / float64(max(d.classes, 1))
}

// yield lets other work run, and reports whether the training goes on.
func (d *trainingSet) yield() bool { return d.pace == nil || d.pace() }

// trainingSample is one text of the training set.
type trainingSample struct {
	class    int32
	words    int32       // number of leading features that are words; the rest are n-grams
	features []int32     // distinct
	stems    []int32     // of a name or keyword: its stems, distinct
	vector   *textVector // nil if vectors are no features
	kind     textKind
	key      uint32 // hash of the text, for an order that does not depend on other texts
	// exclusive marks a keyword that only the agents of one family declare.
	exclusive bool
}

// textKind is the part of the registry that a sample comes from. Only examples
// are used to measure; the others are used to fit.
type textKind uint8

const (
	kindExample textKind = iota
	kindName
	kindKeyword
	kindDescription
	kindNotFor // a text that is not of the class
)

// featureFlags mark features of words.
type featureFlags uint8

const (
	flagStop   featureFlags = 1 << iota // of a stop word
	flagDomain                          // of a word of a domain name
	flagCommon                          // of a common word
)

// trainingText is a sample before its features are extracted.
type trainingText struct {
	text      string
	class     int32
	kind      textKind
	exclusive bool
}

// newTrainingSet extracts the features of the texts. The order of the texts
// must be fixed, because features are numbered as they occur.
func newTrainingSet(list []trainingText, families classFamilies) *trainingSet {
	d := &trainingSet{table: newFeatureTable(8 * len(list)), classes: len(families.of), families: families, samples: make([]trainingSample, len(list)), vectorLength: newVectorLength(list, len(families.of))}
	type extracted struct {
		words, grams []uint32
		vector       *textVector
	}
	read := make([]extracted, len(list))
	const chunk = 512
	chunks := (len(list) + chunk - 1) / chunk
	run.ForEach(context.Background(), runtime.GOMAXPROCS(0), chunks, func(_ context.Context, i int) {
		w := newTokenizer()
		f := featureExtractor{vectors: d.vectorLength > 0}
		var arena []uint32 // hashes of all texts of the chunk
		for k := i * chunk; k < min(len(list), (i+1)*chunk); k++ {
			text := list[k].text
			f.extractText(&w, text)
			from := len(arena)
			arena = append(append(arena, f.words...), f.grams...)
			border := from + len(f.words)
			read[k] = extracted{words: arena[from:border:border], grams: arena[border:len(arena):len(arena)]}
			if f.vectors {
				v := newTextVector(&f.vector, d.vectorLength)
				read[k].vector = &v
			}
		}
	})
	var seen []int32 // by feature: 1 + the last sample that contains it
	arena := make([]int32, 0, 64*len(list))
	for i, u := range list {
		from, words := len(arena), 0
		for block, hashed := range [...][]uint32{read[i].words, read[i].grams} {
			for _, h := range hashed {
				id := d.table.insert(h)
				if int(id) == len(seen) {
					seen = append(seen, 0)
				}
				if seen[id] != int32(i)+1 {
					seen[id] = int32(i) + 1
					arena = append(arena, id)
				}
			}
			if block == 0 {
				words = len(arena) - from
			}
		}
		d.samples[i] = trainingSample{
			class: u.class, kind: u.kind, exclusive: u.exclusive, key: mixHash(hashBytes(seedText, []byte(u.text)) + uint32(u.class)*hashPrime),
			words: int32(words), features: arena[from:len(arena):len(arena)], vector: read[i].vector,
		}
	}
	d.addStems(list)
	d.flags = make([]featureFlags, d.table.size)
	for w := range strings.FieldsSeq(lexicon.StopWords) {
		d.flagWord(w, flagStop)
	}
	for w := range strings.FieldsSeq(lexicon.Common) {
		d.flagWord(w, flagCommon)
	}
	return d
}

// addStems adds the stems of names and keywords.
func (d *trainingSet) addStems(list []trainingText) {
	w := newTokenizer()
	for i := range list {
		if k := list[i].kind; k != kindName && k != kindKeyword {
			continue
		}
		s := &d.samples[i]
		for w.reset(list[i].text); w.next(); {
			id := d.table.lookup(mixHash(hashBytes(seedStem, stemWord(foldNumber(w.word)))))
			if id >= 0 && !slices.Contains(s.stems, id) {
				s.stems = append(s.stems, id)
			}
		}
	}
}

// flagWord marks the features of a folded word and of its stem.
func (d *trainingSet) flagWord(word string, flag featureFlags) {
	b := []byte(word)
	if id := d.table.lookup(mixHash(hashBytes(seedWord, b))); id >= 0 {
		d.flags[id] |= flag
	}
	if id := d.table.lookup(mixHash(hashBytes(seedStem, stemWord(foldNumber(b))))); id >= 0 {
		d.flags[id] |= flag
	}
}
