package docsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// The parameters of BM25, at the values most collections are served well by.
const (
	saturation  = 1.2  // k1: how soon more mentions of a word stop counting
	lengthShare = 0.75 // b: how much a long section is held against it
)

// headingWeight is how often a word of the heading counts, pathWeight a word of
// the headings above it.
const (
	headingWeight = 4
	pathWeight    = 1
)

// Index is a set of sections that can be searched. It is never changed after
// New and safe for concurrent use.
type Index struct {
	sections []Section
	counts   []map[string]int // word → mentions, by section
	lengths  []float64
	mean     float64 // length
	rarity   map[string]float64
}

// Hit is one section that fits a question.
type Hit struct {
	File    string  `json:"file"`
	Heading string  `json:"heading"`
	Anchor  string  `json:"anchor"`
	Snippet string  `json:"snippet"`
	Score   float64 `json:"score"`
}

// New indexes the sections.
func New(sections []Section) *Index {
	x := &Index{sections: sections, rarity: make(map[string]float64)}
	in := make(map[string]int) // word → sections that hold it
	for _, s := range sections {
		counts, length := count(s)
		x.counts = append(x.counts, counts)
		x.lengths = append(x.lengths, length)
		x.mean += length / float64(len(sections))
		for w := range counts {
			in[w]++
		}
	}
	for w, n := range in {
		x.rarity[w] = math.Log(1 + (float64(len(sections)-n)+0.5)/(float64(n)+0.5))
	}
	return x
}

func count(s Section) (map[string]int, float64) {
	counts := make(map[string]int)
	total := 0
	add := func(text string, weight int) {
		for _, w := range words(text) {
			counts[w] += weight
			total += weight
		}
	}
	add(s.Heading, headingWeight)
	add(strings.TrimSuffix(s.File, ".md"), pathWeight)
	for _, h := range s.Path {
		add(h, pathWeight)
	}
	for _, b := range s.Blocks {
		add(b, 1)
	}
	return counts, float64(total)
}

// Search returns the k best sections for a question, best first. Sections that
// share no word with it are not among them.
func (x *Index) Search(question string, k int) []Hit {
	query := distinct(words(question))
	type scored struct {
		section int
		score   float64
	}
	var best []scored
	for i := range x.sections {
		if s := x.score(i, query); s > 0 {
			best = append(best, scored{i, s})
		}
	}
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.section, b.section))
	})
	hits := make([]Hit, 0, max(0, min(k, len(best))))
	for _, b := range best[:cap(hits)] {
		s := x.sections[b.section]
		hits = append(hits, Hit{
			File: s.File, Heading: s.Heading, Anchor: anchor(s.Heading),
			Snippet: x.snippet(s, query), Score: math.Round(b.score*1000) / 1000,
		})
	}
	return hits
}

// score is BM25 over the words of the query, in their order.
func (x *Index) score(section int, query []string) float64 {
	total := 0.0
	for _, w := range query {
		n := float64(x.counts[section][w])
		if n == 0 {
			continue
		}
		norm := 1 - lengthShare + lengthShare*x.lengths[section]/x.mean
		total += x.rarity[w] * n * (saturation + 1) / (n + saturation*norm)
	}
	return total
}

// maxSnippet bounds a quoted passage, in characters.
const maxSnippet = 600

// snippet is what a section says to the query: the block that mentions its
// rarest words, or the section from its beginning when no block has more of them
// than the heading, because then the whole section is about it.
func (x *Index) snippet(s Section, query []string) string {
	best, at := x.weigh(s.Heading, query), -1
	for i, b := range s.Blocks {
		if sum := x.weigh(b, query); sum > best {
			best, at = sum, i
		}
	}
	if at < 0 {
		return cut(plain(strings.Join(s.Blocks, "\n")), maxSnippet)
	}
	text := s.Blocks[at]
	if strings.HasSuffix(text, ":") && at+1 < len(s.Blocks) { // announces what comes
		text += "\n" + s.Blocks[at+1]
	}
	return cut(plain(text), maxSnippet)
}

// weigh adds up the rarity of the query's words that a text has.
func (x *Index) weigh(text string, query []string) float64 {
	have := words(text)
	sum := 0.0
	for _, w := range query {
		if slices.Contains(have, w) {
			sum += x.rarity[w]
		}
	}
	return sum
}

// cut shortens s to n characters, at a space or line end where one is near.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	head := string([]rune(s)[:n-1])
	if i := strings.LastIndexAny(head, " \n"); i > len(head)/2 {
		head = head[:i]
	}
	return strings.TrimRight(head, " \n,;:") + "…"
}

func distinct(list []string) []string {
	var out []string
	for _, w := range list {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
