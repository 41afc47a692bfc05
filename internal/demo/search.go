package demo

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

const (
	headingWeight = 4   // how many occurrences in the text one in the heading counts as
	maxQuote      = 600 // bytes of a section that are quoted
	maxHits       = 3
)

// stopWords are ignored in questions and documents, because they occur in most.
var stopWords = strings.Fields(`a about an and any are as at be by can do does docs documents explain find for from how i
	if in is it me my of on one or say says search that the their there this to us we what when where which who why with you`)

// section is the text below one heading of a document.
type section struct {
	source, heading, text string
	terms                 map[string]float64 // weighted number of occurrences
}

// searchHit is a section that matches a question.
type searchHit struct {
	Source  string  `json:"source"`
	Heading string  `json:"heading"`
	Score   float64 `json:"score"`
	text    string
}

// searchIndex ranks the sections of documents. It is immutable.
type searchIndex struct {
	sections    []section
	occurrences map[string]float64 // number of sections that contain a term
}

// newSearchIndex reads every Markdown file at the root of fsys.
func newSearchIndex(fsys fs.FS) (*searchIndex, error) {
	names, err := fs.Glob(fsys, "*.md")
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	index := &searchIndex{occurrences: map[string]float64{}}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read document: %w", err)
		}
		index.sections = append(index.sections, splitSections("docs/"+name, string(text))...)
	}
	for _, s := range index.sections {
		for term := range s.terms {
			index.occurrences[term]++
		}
	}
	return index, nil
}

// splitSections splits a Markdown text at its headings. Lines in code blocks are
// never headings.
func splitSections(source, text string) []section {
	sections := []section{{source: source, heading: source}}
	inCode := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		if !inCode && strings.HasPrefix(line, "#") {
			sections = append(sections, section{source: source, heading: strings.Trim(line, "# \n")})
			continue
		}
		sections[len(sections)-1].text += line
	}
	sections = slices.DeleteFunc(sections, func(s section) bool { return strings.TrimSpace(s.text) == "" })
	for i := range sections {
		s := &sections[i]
		s.text, s.terms = strings.TrimSpace(s.text), map[string]float64{}
		for _, term := range searchTerms(s.heading) {
			s.terms[term] += headingWeight
		}
		for _, term := range searchTerms(s.text) {
			s.terms[term]++
		}
	}
	return sections
}

// searchTerms returns the words of a text in lower case, without stop words and
// without the endings -s, -ing, -ed and -e.
func searchTerms(text string) []string {
	var terms []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if slices.Contains(stopWords, word) {
			continue
		}
		for _, ending := range []string{"s", "ing", "ed", "e"} {
			if stem, ok := strings.CutSuffix(word, ending); ok && len(stem) > 2 {
				word = stem
			}
		}
		terms = append(terms, word)
	}
	return terms
}

// findSections returns the best sections for a question, best first. A term counts more
// if few sections contain it, and if the section is short.
func (x *searchIndex) findSections(question string) []searchHit {
	terms := searchTerms(question)
	hits := []searchHit{}
	for _, s := range x.sections {
		score := 0.0
		for _, term := range terms {
			if n := s.terms[term]; n > 0 {
				score += math.Log(1+float64(len(x.sections))/x.occurrences[term]) * n / (n + float64(len(s.text))/1000)
			}
		}
		if score > 0 {
			hits = append(hits, searchHit{Source: s.source, Heading: s.heading, Score: score, text: s.text})
		}
	}
	slices.SortStableFunc(hits, func(a, b searchHit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(maxHits, len(hits))]
}

// answerFrom returns the work of rag_agent: it quotes the section that answers the
// question best, and names the next ones.
func answerFrom(index *searchIndex) agentkit.Work {
	return func(_ context.Context, task contract.Task) (contract.Result, error) {
		hits := index.findSections(agentkit.Prompt(task))
		data, metrics := map[string]any{"hits": hits}, map[string]float64{"hits": float64(len(hits))}
		if len(hits) == 0 {
			return newResult(contract.ResultPartial, "The documents do not mention this.", data, metrics, "no section contains a word of the question")
		}
		quote := hits[0].text
		if len(quote) > maxQuote {
			quote = strings.ToValidUTF8(quote[:maxQuote], "") + "…"
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n— %s, “%s”", quote, hits[0].Source, hits[0].Heading)
		for _, h := range hits[1:] {
			fmt.Fprintf(&b, "\nSee also %s, “%s”", h.Source, h.Heading)
		}
		return newResult(contract.ResultSuccess, b.String(), data, metrics, fmt.Sprintf("quoted the best of %d sections", len(index.sections)))
	}
}
