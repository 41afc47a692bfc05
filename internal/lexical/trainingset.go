package lexical

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/token"
	"github.com/caprouter/caprouter/internal/run"
)

// trainingSet is the corpus as training input: numbered classes, numbered
// features, and the features of each sample.
type trainingSet struct {
	table    feature.Table
	flags    []featureFlags // by feature
	classes  int
	families classFamilies
	samples  []trainingSample
	// vectorLength is the length of the vectors of samples; 0 if vectors are no features.
	vectorLength float32
	trainingPace
}

// trainingPace lets a training wait, end early and report its progress.
type trainingPace struct {
	pace     func() bool // see Corpus; may be nil
	stopped  func() bool // see train
	progress *trainingProgress
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

// yield lets other work run, and reports whether to continue the training.
func (p *trainingPace) yield() bool { return !p.stopped() && (p.pace == nil || p.pace()) }

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
	d := &trainingSet{
		table: feature.NewTable(8 * len(list)), classes: len(families.of), families: families,
		samples: make([]trainingSample, len(list)), vectorLength: newVectorLength(list, len(families.of)),
		trainingPace: trainingPace{stopped: neverStopped, progress: newTrainingProgress(context.Background())},
	}
	d.numberFeatures(list, extractTexts(list, d.vectorLength))
	d.addStems(list)
	d.flags = make([]featureFlags, d.table.Size)
	for w := range strings.FieldsSeq(lexicon.StopWords) {
		d.flagWord(w, flagStop)
	}
	for w := range strings.FieldsSeq(lexicon.Common) {
		d.flagWord(w, flagCommon)
	}
	return d
}

// extractedText has the hashes of the features of a text.
type extractedText struct {
	words, grams []uint32
	vector       *textVector // nil if vectors are no features
}

// extractTexts extracts the features of the texts in parallel.
func extractTexts(list []trainingText, vectorLength float32) []extractedText {
	texts := make([]extractedText, len(list))
	var isDeclared func(hash uint32) bool
	if vectorLength > 0 { // more examples show by themselves what a numeral means
		declared := declaredNumerals(list)
		isDeclared = func(hash uint32) bool { return declared[hash] }
	}
	const chunk = 512
	chunks := (len(list) + chunk - 1) / chunk
	run.ForEach(context.Background(), runtime.GOMAXPROCS(0), chunks, func(_ context.Context, i int) {
		w := token.NewScanner()
		f := feature.Extractor{HasVectors: vectorLength > 0, IsDeclared: isDeclared}
		var arena []uint32 // hashes of all texts of the chunk
		for k := i * chunk; k < min(len(list), (i+1)*chunk); k++ {
			f.Extract(&w, list[k].text)
			from := len(arena)
			arena = append(append(arena, f.Words...), f.Ngrams...)
			border := from + len(f.Words)
			texts[k] = extractedText{words: arena[from:border:border], grams: arena[border:len(arena):len(arena)]}
			if f.HasVectors {
				v := newTextVector(&f.Vector, vectorLength)
				texts[k].vector = &v
			}
		}
	})
	return texts
}

// declaredNumerals returns the hashes of the numerals that a name or keyword contains, such
// as tier_1 or 1099.
func declaredNumerals(list []trainingText) map[uint32]bool {
	declared := map[uint32]bool{}
	w := token.NewScanner()
	for i := range list {
		if k := list[i].kind; k != kindName && k != kindKeyword {
			continue
		}
		for w.Reset(list[i].text); w.Next(); {
			if feature.IsNumeral(w.Word) {
				declared[feature.OfWord(w.Word)] = true
			}
		}
	}
	return declared
}

// numberFeatures makes the samples, and numbers their features in the order of the texts.
func (d *trainingSet) numberFeatures(list []trainingText, texts []extractedText) {
	var seen []int32 // by feature: 1 + the last sample that contains it
	arena := make([]int32, 0, 64*len(list))
	for i, u := range list {
		from, words := len(arena), 0
		for block, hashes := range [...][]uint32{texts[i].words, texts[i].grams} {
			for _, h := range hashes {
				id := d.table.Insert(h)
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
			class: u.class, kind: u.kind, exclusive: u.exclusive, key: feature.Combine(feature.HashText(u.text), uint32(u.class)),
			words: int32(words), features: arena[from:len(arena):len(arena)], vector: texts[i].vector,
		}
	}
}

// addStems adds the stems of names and keywords, of numerals the words.
func (d *trainingSet) addStems(list []trainingText) {
	w := token.NewScanner()
	for i := range list {
		if k := list[i].kind; k != kindName && k != kindKeyword {
			continue
		}
		s := &d.samples[i]
		for w.Reset(list[i].text); w.Next(); {
			h := feature.OfWord(w.Word)
			if !feature.IsNumeral(w.Word) {
				h = feature.OfStem(token.Stem(token.FoldNumber(w.Word)))
			}
			id := d.table.Lookup(h)
			if id >= 0 && !slices.Contains(s.stems, id) {
				s.stems = append(s.stems, id)
			}
		}
	}
}

// flagWord marks the features of a folded word and of its stem.
func (d *trainingSet) flagWord(word string, flag featureFlags) {
	b := []byte(word)
	if id := d.table.Lookup(feature.OfWord(b)); id >= 0 {
		d.flags[id] |= flag
	}
	if id := d.table.Lookup(feature.OfStem(token.Stem(token.FoldNumber(b)))); id >= 0 {
		d.flags[id] |= flag
	}
}

// maxClasses bounds the classes and families, which weights refer to by number.
const maxClasses = math.MaxUint16

// classFamilies are the sets of agents that serve the classes.
type classFamilies struct {
	of    []int32 // by class
	count int     // 0 if they are not part of the model
	tied  bool    // classes of one family may be tied
	familyMembers
}

// familyMembers are the classes of each family.
type familyMembers struct {
	first   []int32 // by family: index of its first member; one more at the end
	members []int32
}

// listMembers sets the members of the families.
func (f *classFamilies) listMembers() {
	families := int32(0)
	for _, g := range f.of {
		families = max(families, g+1)
	}
	f.first, f.members = make([]int32, families+1), make([]int32, len(f.of))
	for _, g := range f.of {
		f.first[g+1]++
	}
	for g := range families {
		f.first[g+1] += f.first[g]
	}
	next := slices.Clone(f.first)
	for c, g := range f.of {
		f.members[next[g]] = int32(c)
		next[g]++
	}
}

// membersWith returns the classes that may be tied with a class, with itself, in order.
func (f *classFamilies) membersWith(class int) []int32 {
	if !f.tied {
		return nil
	}
	g := f.of[class]
	return f.members[f.first[g]:f.first[g+1]]
}

// tie reports whether the two classes may be tied.
func (f *classFamilies) tie(a, b int) bool { return f.tied && f.of[a] == f.of[b] }

// agentFamilies numbers the sets of agents that serve an intent. Intents of a
// family belong to one field, and share what they learn about it. If every
// intent has its own family or all have the same one, they share nothing.
func agentFamilies(docs []IntentDoc) classFamilies {
	known := map[string]int32{}
	f := classFamilies{}
	for i := range docs {
		key := strings.Join(sortedUnique(docs[i].Agents), "\x00")
		n, ok := known[key]
		if !ok {
			n = int32(len(known))
			known[key] = n
		}
		f.of = append(f.of, n)
		f.tied = f.tied || ok && key != ""
	}
	if len(known) > 1 && len(known) < len(docs) && len(known)+len(docs) <= maxClasses {
		f.count = len(known)
	}
	return f
}

// maxJoinedExamples is the number of examples of an intent from which its name
// is not learned as one word as well (codereview).
const maxJoinedExamples = 3

// trainingTexts lists the training texts by family and intent: examples, the
// name, the keywords, the description if its agents serve nothing else, and the
// not_for texts as negatives.
func trainingTexts(docs []IntentDoc, family []int32) []trainingText {
	order := make([]int32, len(docs))
	described := map[string]int{}
	for i := range docs {
		order[i] = int32(i)
		for _, text := range sortedUnique(docs[i].Descriptions) {
			described[text]++
		}
	}
	owners := keywordOwners(docs)
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(family[a], family[b]) })
	var list []trainingText
	for _, class := range order {
		d := &docs[class]
		name := token.SplitCamel(d.Name)
		list = append(list, trainingText{text: name, class: class, kind: kindName})
		if joined := token.JoinWords(d.Name); joined != name && len(d.Examples) < maxJoinedExamples {
			list = append(list, trainingText{text: joined, class: class, kind: kindName})
		}
		for _, text := range sortedUnique(d.Keywords) {
			list = append(list, trainingText{text: text, class: class, kind: kindKeyword, exclusive: len(owners[text]) > 0})
		}
		for _, text := range sortedUnique(d.Descriptions) {
			if described[text] == 1 {
				list = append(list, trainingText{text: text, class: class, kind: kindDescription})
			}
		}
		for _, text := range sortedUnique(d.NotFor) {
			list = append(list, trainingText{text: text, class: class, kind: kindNotFor})
		}
		for _, text := range sortedUnique(d.Examples) {
			list = append(list, trainingText{text: text, class: class})
		}
	}
	return list
}

// keywordOwners returns, by keyword, the agents that serve all intents with the
// keyword. If there is none, several agents declare it: as a keyword, or in the name of
// an intent or domain.
func keywordOwners(docs []IntentDoc) map[string][]string {
	owners := map[string][]string{}
	for i := range docs {
		for _, text := range sortedUnique(docs[i].Keywords) {
			if known, ok := owners[text]; ok {
				owners[text] = docs[i].commonAgents(known)
			} else {
				owners[text] = docs[i].commonAgents(nil)
			}
		}
	}
	w := token.NewScanner()
	stems := make(map[string][]string, len(owners)) // of the keywords
	for text := range owners {
		for w.Reset(text); w.Next(); {
			stems[text] = append(stems[text], string(token.Stem(token.FoldNumber(w.Word))))
		}
	}
	beginning := map[string][]string{} // keywords by their first stem, "" if they have none
	for text := range owners {
		first := ""
		if len(stems[text]) > 0 {
			first = stems[text][0]
		}
		beginning[first] = append(beginning[first], text)
	}
	for i := range docs {
		named := map[string]bool{"": true} // stems
		for _, text := range append([]string{docs[i].Name}, docs[i].Domains...) {
			for w.Reset(token.SplitCamel(text)); w.Next(); {
				named[string(token.Stem(token.FoldNumber(w.Word)))] = true
			}
		}
		unnamed := func(stem string) bool { return !named[stem] }
		for first := range named {
			for _, text := range beginning[first] {
				if known := owners[text]; len(known) > 0 && !slices.ContainsFunc(stems[text], unnamed) {
					owners[text] = docs[i].commonAgents(known)
				}
			}
		}
	}
	return owners
}

// commonAgents returns which of the agents serve the intent; all that do if the list is
// nil. An intent without agents is served by one of its own.
func (d *IntentDoc) commonAgents(agents []string) []string {
	own := sortedUnique(d.Agents)
	if len(own) == 0 {
		own = []string{d.Name}
	}
	if agents == nil {
		return own
	}
	return slices.DeleteFunc(agents, func(a string) bool { return !slices.Contains(own, a) })
}
