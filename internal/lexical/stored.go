package lexical

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"encoding/hex"
	"hash"
	"runtime"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/calibration"
	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/wordvectors"
)

// trainingVersion is the version of everything that the training computes. A test
// compares it with a hash of a trained model.
const trainingVersion = 11

// Storage keeps what the training computes, by a key that is made of the corpus and the
// version of the training.
type Storage interface {
	// Load returns what was stored under the key, unchanged, or nil.
	Load(key string) []byte
	// Store stores what encode returns, or does not call it.
	Store(key string, encode func() []byte)
}

// TrainStored is Train for a corpus that was possibly trained before: it then loads the
// result, which takes a twentieth of the time, and else stores it. If ctx ends, it returns the
// error of ctx soon, and stores nothing.
func TrainStored(ctx context.Context, c Corpus, s Storage) (*Model, error) {
	m := train(c, s, func() bool { return ctx.Err() != nil }, newTrainingProgress(ctx))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// noStorage contains nothing.
type noStorage struct{}

func (noStorage) Load(string) []byte          { return nil }
func (noStorage) Store(string, func() []byte) {}

// learnedState is the part of a Model that takes long to compute. The rest is an index of
// the corpus.
type learnedState struct {
	statistical *statisticalModel
	learned     []learnedDomains
	domainWords []learnedWord
	report      Report
}

// learnedWord is a word that examples use for one domain.
type learnedWord struct {
	form   string
	domain int32
}

// corpusKey returns the key of a corpus in a Storage. Floating-point results depend on the
// processor and the compiler.
func corpusKey(docs []IntentDoc, domains []string, aliases map[string][]string) string {
	h := sha256.New()
	writeHash(h, []string{runtime.GOARCH, runtime.Version(), lexicon.StopWords, lexicon.Common, lexicon.Synonyms, lexicon.Translations, lexicon.Chinese})
	_ = binary.Write(h, binary.LittleEndian, int64(trainingVersion))
	_ = binary.Write(h, binary.LittleEndian, wordvectors.Checksum())
	_ = binary.Write(h, binary.LittleEndian, int64(len(docs)))
	for i := range docs {
		d := &docs[i]
		writeHash(h, []string{d.Name})
		for _, list := range [][]string{d.Examples, d.Keywords, d.Agents, d.Descriptions, d.NotFor, d.Domains} {
			writeHash(h, list)
		}
	}
	writeHash(h, domains)
	for _, name := range domains {
		writeHash(h, aliases[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// writeHash adds a list to a hash, with lengths, so that different lists differ.
func writeHash(h hash.Hash, list []string) {
	var number [8]byte
	write := func(n int) {
		binary.LittleEndian.PutUint64(number[:], uint64(n))
		h.Write(number[:])
	}
	write(len(list))
	for _, text := range list {
		write(len(text))
		h.Write([]byte(text))
	}
}

// storedState is the stored form of a learnedState. The names of its fields are part of the
// form: gob finds fields by their names. Rarity is the inverse document frequency, a Unit
// the scale of quantized weights.
type storedState struct {
	Slots                      []uint32 // hash and number in turn
	Features                   int
	Rarity                     []float32
	UnseenRarity, CommonRarity float32
	Flags                      []byte
	Unit                       []float32
	Start                      []int32
	Class                      []uint16
	Weight                     []byte
	Bias                       []float32
	VectorWeight               []byte // empty if word vectors are no features
	VectorUnit                 []float32
	FamilyOf                   []int32
	Families                   int
	Tied                       bool
	TextStart                  []int32
	Texts                      []int32 // from, to, sample and kind in turn
	TextFeatures               []int32
	Ranking                    []float64
	Knots                      []float64 // log odds and confidence in turn
	RejectThreshold            float64
	AcceptThreshold            float64
	Declared                   [][]int32 // domains by intent
	Domain                     []int32   // by intent
	WordForms                  []string
	WordDomains                []int32
	Report                     Report
}

// encode returns the stored form.
func (l *learnedState) encode() []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(l.stored()); err != nil {
		panic(err) // of the type alone
	}
	return b.Bytes()
}

func (l *learnedState) stored() *storedState {
	s := l.statistical
	to := &storedState{
		Features: s.linear.features.Size,
		Rarity:   s.linear.idf, UnseenRarity: s.linear.unseenIDF, CommonRarity: s.linear.commonIDF,
		Unit: s.linear.scale, Start: s.linear.start, Class: s.linear.class, Bias: s.linear.bias, VectorUnit: s.linear.vector.scale,
		FamilyOf: s.linear.of, Families: s.linear.count, Tied: s.linear.tied,
		TextStart: s.declared.start, TextFeatures: s.declared.features,
		Ranking: s.calibration.Ranking[:], RejectThreshold: s.rejectThreshold, AcceptThreshold: s.acceptThreshold,
		Report: l.report,
	}
	for _, e := range s.linear.features.Entries {
		to.Slots = append(to.Slots, e.Hash, e.Number)
	}
	for _, f := range s.linear.flags {
		to.Flags = append(to.Flags, byte(f))
	}
	for _, w := range s.linear.weight {
		to.Weight = append(to.Weight, byte(w))
	}
	for _, w := range s.linear.vector.weight {
		to.VectorWeight = append(to.VectorWeight, byte(w))
	}
	for _, t := range s.declared.texts {
		to.Texts = append(to.Texts, t.from, t.to, t.sample, int32(t.kind))
	}
	for _, k := range s.calibration.Knots {
		to.Knots = append(to.Knots, k.LogOdds, k.Confidence)
	}
	for _, d := range l.learned {
		to.Declared, to.Domain = append(to.Declared, d.declared), append(to.Domain, d.domain)
	}
	for _, w := range l.domainWords {
		to.WordForms, to.WordDomains = append(to.WordForms, w.form), append(to.WordDomains, w.domain)
	}
	return to
}

// decodeLearned reads the stored form of a model of so many intents. It returns nil if it
// is something else.
func decodeLearned(data []byte, intents int) *learnedState {
	var from storedState
	if len(data) == 0 || gob.NewDecoder(bytes.NewReader(data)).Decode(&from) != nil || !from.isComplete(intents) {
		return nil
	}
	s := &statisticalModel{rejectThreshold: from.RejectThreshold, acceptThreshold: from.AcceptThreshold}
	s.linear = quantizedModel{
		features:   feature.RestoreTable(make([]feature.Entry, len(from.Slots)/2), from.Features),
		idfWeights: idfWeights{idf: from.Rarity, unseenIDF: from.UnseenRarity, commonIDF: from.CommonRarity, flags: make([]featureFlags, len(from.Flags))},
		scale:      from.Unit, start: from.Start, class: from.Class, weight: make([]int8, len(from.Weight)), bias: from.Bias,
		vector:        quantizedVectors{weight: make([]int8, len(from.VectorWeight)), scale: from.VectorUnit},
		classFamilies: classFamilies{of: from.FamilyOf, count: from.Families, tied: from.Tied},
	}
	for i := range s.linear.features.Entries {
		s.linear.features.Entries[i] = feature.Entry{Hash: from.Slots[2*i], Number: from.Slots[2*i+1]}
	}
	for i, f := range from.Flags {
		s.linear.flags[i] = featureFlags(f)
	}
	for i, w := range from.Weight {
		s.linear.weight[i] = int8(w)
	}
	for i, w := range from.VectorWeight {
		s.linear.vector.weight[i] = int8(w)
	}
	s.linear.prepare()
	s.declared = declaredTexts{start: from.TextStart, features: from.TextFeatures}
	for t := range slices.Chunk(from.Texts, 4) {
		s.declared.texts = append(s.declared.texts, declaredText{from: t[0], to: t[1], sample: t[2], kind: textKind(t[3])})
	}
	copy(s.calibration.Ranking[:], from.Ranking)
	for k := range slices.Chunk(from.Knots, 2) {
		s.calibration.Knots = append(s.calibration.Knots, calibration.Knot{LogOdds: k[0], Confidence: k[1]})
	}
	l := &learnedState{statistical: s, report: from.Report}
	for i, declared := range from.Declared {
		l.learned = append(l.learned, learnedDomains{declared: declared, domain: from.Domain[i]})
	}
	for i, form := range from.WordForms {
		l.domainWords = append(l.domainWords, learnedWord{form, from.WordDomains[i]})
	}
	return l
}

// isComplete reports whether all lengths fit together.
func (s *storedState) isComplete(intents int) bool {
	slots := len(s.Slots) / 2
	return slots > 0 && slots&(slots-1) == 0 && len(s.Slots) == 2*slots && s.Features < slots &&
		len(s.Rarity) == s.Features && len(s.Flags) == s.Features && len(s.Unit) == s.Features && len(s.Start) == s.Features+1 &&
		int(s.Start[s.Features]) == len(s.Class) && len(s.Weight) == len(s.Class) &&
		len(s.VectorWeight) == wordvectors.Dimensions*len(s.VectorUnit) && (len(s.VectorUnit) == 0 || len(s.VectorUnit) == intents) &&
		len(s.Bias) == intents && len(s.FamilyOf) == intents && len(s.TextStart) == intents+1 &&
		len(s.Texts)%4 == 0 && int(s.TextStart[intents]) == len(s.Texts)/4 && len(s.Ranking) == calibration.FeatureCount && len(s.Knots)%2 == 0 &&
		len(s.Declared) == intents && len(s.Domain) == intents && len(s.WordForms) == len(s.WordDomains) &&
		!slices.ContainsFunc(s.WordForms, func(form string) bool { return strings.TrimSpace(form) == "" })
}
