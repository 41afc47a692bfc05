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

	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// ClusterIndex finds similar texts without predefined classes. A cluster is a
// set of texts under an id; [ClusterIndex.Nearest] returns the cluster most
// similar to a text.
//
//	x := lexical.NewClusterIndex()
//	x.Set("t1", []string{"book a flight to Lisbon", "I need to book two flights"})
//	id, similarity := x.Nearest("please book me a flight for Monday") // "t1", 0.6
//
// The similarity is a cosine from 0 to 1: the mean of that of the word stems
// and that of the character n-grams (in Chinese and Japanese, pairs of
// characters and single characters), so that related or misspelt words count
// too. Stop words, and words that many clusters contain, weigh little. If no
// content word is shared, the similarity is 0.
//
// In a short text a single word makes the difference: "book a hotel in Lisbon"
// has two thirds of "book a flight to Lisbon". If a text has up to three
// content words (six pairs of characters in Chinese and Japanese), the cluster
// must contain the first two of them, which usually state the action and its
// object.
//
// The result does not depend on the order in which clusters are set. A
// ClusterIndex is not safe for concurrent use.
type ClusterIndex struct {
	clusters  map[string]*textCluster
	frequency map[uint32]int      // by feature: number of clusters that contain it
	postings  map[uint32][]string // by stem: ids of the clusters that contain it
	terms     feature.Terms
}

// Bounds of the features that a cluster stores.
const (
	maxClusterWords  = 96
	maxClusterNgrams = 256
)

// textCluster contains the most frequent features of the cluster's texts.
type textCluster struct{ words, grams []weightedFeature }

// weightedFeature is a feature of a text or cluster with its weight.
type weightedFeature struct {
	hash   uint32
	weight float64
}

// maxCompared bounds the clusters that a text is compared with, unless its
// rarest word leads to more.
const maxCompared = 200

// stopWordWeight is the weight of a stop word.
const stopWordWeight = 0.1

// maxShortText is the length of a short text in half words. A pair of
// characters is about half a word of Chinese or Japanese.
const maxShortText = 6

// NewClusterIndex returns an empty index.
func NewClusterIndex() *ClusterIndex {
	stops := token.StopWords()
	for w := range strings.FieldsSeq(fillerWords) {
		stops[w] = true
	}
	return &ClusterIndex{
		clusters: map[string]*textCluster{}, frequency: map[uint32]int{}, postings: map[uint32][]string{},
		terms: feature.Terms{Tokens: token.NewScanner(), Stops: stops, StopWeight: stopWordWeight},
	}
}

// AsksNothing reports whether a text names nothing that it is about: it has no content word, or
// only those of greetings, thanks and farewells.
func AsksNothing(text string) bool {
	g := NewClusterIndex()
	w := &g.terms.Tokens
	for w.Reset(text); w.Next(); {
		if word := string(w.Word); !g.terms.Stops[word] && !isListed(courtesyWords, word) {
			return false
		}
	}
	return true
}

// Len returns the number of clusters.
func (g *ClusterIndex) Len() int { return len(g.clusters) }

// Set replaces the texts of a cluster.
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

// Remove removes a cluster.
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

// Nearest returns the most similar cluster, the smaller id if two are equally
// similar, or "" and 0 if none is similar.
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

// leadingStems returns the stems of the first two content words of a short
// text, and nothing for a longer one.
func (g *ClusterIndex) leadingStems(text string) []uint32 {
	var stems []uint32
	halves := 0
	w := &g.terms.Tokens
	for w.Reset(text); w.Next(); {
		if g.terms.Stops[string(w.Word)] {
			continue
		}
		halves += 2
		if r, _ := utf8.DecodeRune(w.Word); token.IsUnspaced(r) {
			halves--
		}
		if halves > maxShortText {
			return nil
		}
		if len(stems) < 2 {
			stems = append(stems, feature.OfStem(token.Stem(token.FoldNumber(w.Word))))
		}
	}
	return stems
}

// containsAll reports whether the cluster contains all stems.
func (g *textCluster) containsAll(words []uint32) bool {
	for _, hash := range words {
		if _, ok := slices.BinarySearchFunc(g.words, hash, func(f weightedFeature, h uint32) int { return cmp.Compare(f.hash, h) }); !ok {
			return false
		}
	}
	return true
}

// candidateIDs returns the sorted ids of the clusters that share a content word
// with the text. It follows the rarest word first, and others only while the
// number of candidates stays within maxCompared.
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

// cosineSimilarity compares a text of the given vector length with a cluster.
// Both lists are sorted by hash.
func (g *ClusterIndex) cosineSimilarity(text, of []weightedFeature, length float64) float64 {
	sum, at := 0.0, 0
	for _, f := range of {
		for at < len(text) && text[at].hash < f.hash {
			at++
		}
		if at < len(text) && text[at].hash == f.hash {
			idf := g.inverseFrequency(f.hash)
			sum += text[at].weight * f.weight * idf * idf
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

// inverseFrequency is larger for features of fewer clusters. The constant 4
// dampens it while there are only a few clusters.
func (g *ClusterIndex) inverseFrequency(hash uint32) float64 {
	return math.Log1p(float64(len(g.clusters)+4) / float64(g.frequency[hash]+1))
}

// extractFeatures returns the weighted stems and n-grams of a text, sorted by
// hash.
func (g *ClusterIndex) extractFeatures(text string) (words, grams []weightedFeature) {
	g.terms.ForEach(text, func(hash uint32, isWord bool, share float64) {
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

// mergeFeatures sorts a list by hash in place, and joins entries of the same
// hash.
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

// topFeatures returns the features of the greatest weight, sorted by hash.
func topFeatures(list []weightedFeature, most int) []weightedFeature {
	if len(list) <= most {
		return slices.Clone(list) // with the exact capacity, because it is stored
	}
	slices.SortFunc(list, func(a, b weightedFeature) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.hash, b.hash))
	})
	list = slices.Clone(list[:most])
	slices.SortFunc(list, func(a, b weightedFeature) int { return cmp.Compare(a.hash, b.hash) })
	return list
}

// fillerWords are further words without content: phrases that start a request,
// and small numbers.
const fillerWords = `
tell know help show give find get got go going make wondering think ask one two three
diga saber ajude ajuda mostre dois duas tres
dime ayuda ayudame muestra muestrame dos
帮
`

// ContentWords returns, for each text, its distinct content words in order of
// appearance, folded: lower case, without accents except those that form
// another letter (й, ё). For Chinese and Japanese these are pairs of
// characters.
func ContentWords(texts ...string) [][]string {
	stops, w := token.StopWords(), token.NewScanner()
	lists := make([][]string, len(texts))
	for i, text := range texts {
		for w.Reset(text); w.Next(); {
			word := string(w.Word)
			if stops[word] {
				continue
			}
			if strings.ContainsFunc(word, isCyrillic) {
				word = lastWordUnfolded(text[:w.End()])
			}
			if !slices.Contains(lists[i], word) {
				lists[i] = append(lists[i], word)
			}
		}
	}
	return lists
}

func isCyrillic(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }

// lastWordUnfolded returns the last word of a text in lower case with its
// accents.
func lastWordUnfolded(text string) string {
	start := 0
	if r := strings.LastIndexFunc(text, func(r rune) bool { return !token.IsWordRune(r) }); r >= 0 {
		_, size := utf8.DecodeRuneInString(text[r:])
		start = r + size
	}
	return strings.ToLower(norm.NFC.String(text[start:]))
}
