package lexical

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// ClusterIndex gathers texts that ask for the same thing without being told what there
// is to ask for: a group is a few texts under an id, and [Groups.Nearest] says
// which group a further text is most like, and how much.
//
//	g := lexical.NewGroups()
//	g.Set("t1", []string{"book a flight to Lisbon", "I need to book two flights"})
//	id, similarity := g.Nearest("please book me a flight for Monday") // "t1", 0.6
//
// Similarity is a cosine, 0 … 1: half of it is between the stems of the words,
// half between the character n-grams inside them (of Chinese and Japanese, pairs
// of characters and characters), so that a related or misspelt word beside one
// that is the same counts as well. Two things count little: words that only hold
// sentences together, and what many of the groups have. Where every group says
// "report", that word tells none of them apart. What has no content word in common
// is not similar, and a text without any is like nothing.
//
// In a short text one word is the whole difference: "book a hotel in Lisbon" is two
// thirds of "book a flight to Lisbon". So of up to three content words, six pairs of
// characters in Chinese and Japanese, the first two, which say what to do and with
// what, must both be among the group's.
//
// The same texts under the same ids give the same answer, in whatever order they
// came. A Groups serves one goroutine at a time.
type ClusterIndex struct {
	clusters  map[string]*textCluster
	frequency map[uint32]int      // in how many groups a feature is
	postings  map[uint32][]string // by stem: ids of the groups that have it
	terms     termExtractor
}

// What one group keeps of its texts; they are bounded, and so is it.
const (
	maxClusterWords  = 96
	maxClusterNgrams = 256
)

// textCluster is what the texts of one id are made of: the features most of them have.
type textCluster struct{ words, grams []weightedFeature }

// weightedFeature is one of a group or text, with how much there is of it.
type weightedFeature struct {
	hash   uint32
	weight float64
}

// maxCompared is how many groups a text is compared with, as long as its rarest
// word does not lead to more.
const maxCompared = 200

// stopWordWeight is what a word that holds sentences together counts.
const stopWordWeight = 0.1

// What a text is short up to, in half words: a pair of characters is about half a
// word of Chinese or Japanese.
const maxShortText = 6

// NewClusterIndex returns one without groups.
func NewClusterIndex() *ClusterIndex {
	stops := newStopSet()
	for w := range strings.FieldsSeq(fillerWords) {
		stops[w] = true
	}
	return &ClusterIndex{
		clusters: map[string]*textCluster{}, frequency: map[uint32]int{}, postings: map[uint32][]string{},
		terms: termExtractor{tokens: newTokenizer(), stops: stops},
	}
}

// HasContentWord reports whether the text has a content word, without which it is like
// no other.
func HasContentWord(text string) bool {
	words, _ := NewClusterIndex().extractFeatures(text)
	return slices.ContainsFunc(words, func(f weightedFeature) bool { return f.weight == 1 })
}

// Len is how many groups there are.
func (g *ClusterIndex) Len() int { return len(g.clusters) }

// Set makes the texts the group's, instead of those it had.
func (g *ClusterIndex) Set(id string, texts []string) {
	g.Remove(id)
	if len(texts) == 0 {
		return
	}
	var words, grams []weightedFeature
	for _, text := range texts {
		w, c := g.extractFeatures(text)
		words, grams = append(words, w...), append(grams, c...)
	}
	n := &textCluster{topFeatures(mergeFeatures(words, sumWeights), maxClusterWords), topFeatures(mergeFeatures(grams, sumWeights), maxClusterNgrams)}
	g.clusters[id] = n
	for _, f := range slices.Concat(n.words, n.grams) {
		g.frequency[f.hash]++
	}
	for _, f := range n.words {
		g.postings[f.hash] = append(g.postings[f.hash], id)
	}
}

// Remove forgets a group.
func (g *ClusterIndex) Remove(id string) {
	old := g.clusters[id]
	if old == nil {
		return
	}
	delete(g.clusters, id)
	for _, f := range slices.Concat(old.words, old.grams) {
		if g.frequency[f.hash]--; g.frequency[f.hash] == 0 {
			delete(g.frequency, f.hash)
		}
	}
	for _, f := range old.words {
		at := slices.Index(g.postings[f.hash], id)
		if g.postings[f.hash] = slices.Delete(g.postings[f.hash], at, at+1); len(g.postings[f.hash]) == 0 {
			delete(g.postings, f.hash)
		}
	}
}

// Nearest returns the group most like the text, of two that are as like it the
// smaller id; "" and 0 when none is like it.
func (g *ClusterIndex) Nearest(text string) (id string, similarity float64) {
	words, grams := g.extractFeatures(text)
	wordsLength, gramsLength := g.vectorLength(words), g.vectorLength(grams)
	head := g.leadingStems(text)
	for _, other := range g.candidateIDs(words) {
		o := g.clusters[other]
		if !o.containsAll(head) {
			continue
		}
		s := (g.cosineSimilarity(words, o.words, wordsLength) + g.cosineSimilarity(grams, o.grams, gramsLength)) / 2
		if s > similarity {
			id, similarity = other, s
		}
	}
	return id, min(similarity, 1)
}

// leadingStems returns the stems of the first two content words of a short text, nothing of
// a longer one.
func (g *ClusterIndex) leadingStems(text string) []uint32 {
	var stems []uint32
	halves := 0
	w := &g.terms.tokens
	for w.reset(text); w.next(); {
		if g.terms.stops[string(w.word)] {
			continue
		}
		halves += 2
		if r, _ := utf8.DecodeRune(w.word); isUnspaced(r) {
			halves--
		}
		if halves > maxShortText {
			return nil
		}
		if len(stems) < 2 {
			stems = append(stems, mixHash(hashBytes(seedStem, stemWord(foldNumber(w.word)))))
		}
	}
	return stems
}

// containsAll reports whether the group has all these words.
func (g *textCluster) containsAll(words []uint32) bool {
	for _, hash := range words {
		if _, ok := slices.BinarySearchFunc(g.words, hash, func(f weightedFeature, h uint32) int { return cmp.Compare(f.hash, h) }); !ok {
			return false
		}
	}
	return true
}

// candidateIDs returns the ids of the groups that have a content word of the text,
// sorted. The rarest word is followed first, the others only while that does not
// lead to too many.
func (g *ClusterIndex) candidateIDs(words []weightedFeature) []string {
	telling := slices.DeleteFunc(slices.Clone(words), func(f weightedFeature) bool { return f.weight < 1 })
	slices.SortFunc(telling, func(a, b weightedFeature) int {
		return cmp.Or(cmp.Compare(len(g.postings[a.hash]), len(g.postings[b.hash])), cmp.Compare(a.hash, b.hash))
	})
	ids := map[string]bool{}
	for _, f := range telling {
		if len(ids) > 0 && len(ids)+len(g.postings[f.hash]) > maxCompared {
			break
		}
		for _, id := range g.postings[f.hash] {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// cosineSimilarity of a text, of that length, with a group. Both are sorted by hash.
func (g *ClusterIndex) cosineSimilarity(text, of []weightedFeature, length float64) float64 {
	sum, at := 0.0, 0
	for _, f := range of {
		for at < len(text) && text[at].hash < f.hash {
			at++
		}
		if at < len(text) && text[at].hash == f.hash {
			rarity := g.inverseFrequency(f.hash)
			sum += text[at].weight * f.weight * rarity * rarity
		}
	}
	if sum == 0 {
		return 0
	}
	return sum / (length * g.vectorLength(of))
}

func (g *ClusterIndex) vectorLength(list []weightedFeature) float64 {
	sum := 0.0
	for _, f := range list {
		weight := f.weight * g.inverseFrequency(f.hash)
		sum += weight * weight
	}
	return math.Sqrt(sum)
}

// inverseFrequency grows with how few of the groups have the feature. The 4 keeps it from
// swinging while there are a handful of groups.
func (g *ClusterIndex) inverseFrequency(hash uint32) float64 {
	return math.Log1p(float64(len(g.clusters)+4) / float64(g.frequency[hash]+1))
}

// extractFeatures returns the stems and n-grams a text has, with what each counts, by
// hash.
func (g *ClusterIndex) extractFeatures(text string) (words, grams []weightedFeature) {
	g.terms.forEachTerm(text, func(hash uint32, isWord bool, share float64) {
		if share < 1 {
			share = stopWordWeight
		}
		if isWord {
			words = append(words, weightedFeature{hash, share})
		} else {
			grams = append(grams, weightedFeature{hash, share})
		}
	})
	return mergeFeatures(words, maxWeight), mergeFeatures(grams, maxWeight)
}

func maxWeight(a, b float64) float64  { return max(a, b) }
func sumWeights(a, b float64) float64 { return a + b }

// mergeFeatures sorts a list by hash, in place, and makes one of those that are the same.
func mergeFeatures(list []weightedFeature, join func(a, b float64) float64) []weightedFeature {
	slices.SortFunc(list, func(a, b weightedFeature) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.weight, b.weight))
	})
	kept := list[:0]
	for _, f := range list {
		if last := len(kept) - 1; last >= 0 && kept[last].hash == f.hash {
			kept[last].weight = join(kept[last].weight, f.weight)
		} else {
			kept = append(kept, f)
		}
	}
	return kept
}

// topFeatures returns the features of a merged list that count most, by hash.
func topFeatures(list []weightedFeature, most int) []weightedFeature {
	if len(list) <= most {
		return slices.Clone(list) // with no more room than it needs: it is kept
	}
	slices.SortFunc(list, func(a, b weightedFeature) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.hash, b.hash))
	})
	list = slices.Clone(list[:most])
	slices.SortFunc(list, func(a, b weightedFeature) int { return cmp.Compare(a.hash, b.hash) })
	return list
}

// fillerWords are words, beside those that hold sentences together, that do not say what
// a request is about: how it is begun, and small numbers.
const fillerWords = `
tell know help show give find get got go going make wondering think ask one two three
diga saber ajude ajuda mostre dois duas tres
dime ayuda ayudame muestra muestrame dos
帮
`

// ContentWords returns, for each text, the distinct words that say what it is
// about, in the order they come, folded: lower case, without accents but for those
// that make another letter (й, ё). Of Chinese and Japanese these are pairs of
// characters.
func ContentWords(texts ...string) [][]string {
	stops, w := newStopSet(), newTokenizer()
	lists := make([][]string, len(texts))
	for i, text := range texts {
		for w.reset(text); w.next(); {
			word := string(w.word)
			if stops[word] {
				continue
			}
			if strings.ContainsFunc(word, isCyrillic) {
				word = lastWordUnfolded(text[:w.pos])
			}
			if !slices.Contains(lists[i], word) {
				lists[i] = append(lists[i], word)
			}
		}
	}
	return lists
}

func isCyrillic(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }

// lastWordUnfolded is the last word of a text, in lower case and with its accents.
func lastWordUnfolded(text string) string {
	start := 0
	if r := strings.LastIndexFunc(text, func(r rune) bool { return !isWordRune(r) }); r >= 0 {
		_, size := utf8.DecodeRuneInString(text[r:])
		start = r + size
	}
	return strings.ToLower(norm.NFC.String(text[start:]))
}

func newStopSet() map[string]bool {
	stops := map[string]bool{}
	for w := range strings.FieldsSeq(stopWords) {
		stops[w] = true
	}
	return stops
}
