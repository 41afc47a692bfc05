package lexical_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/lexical"
)

var benchCorpora = []struct {
	name   string
	corpus func() lexical.Corpus
}{
	{"source document", sourceCorpus},
	{"3 intents x 100 examples", func() lexical.Corpus { return syntheticCorpus(3, 100, 20, 1) }},
	{"150 intents x 10 examples", func() lexical.Corpus { return syntheticCorpus(150, 10, 20, 1) }},
	{"150 intents x 100 examples", func() lexical.Corpus { return syntheticCorpus(150, 100, 20, 1) }},
	{"1000 agents, 3000 intents x 3 examples", func() lexical.Corpus {
		c := syntheticCorpus(3000, 3, 20, 1)
		for i := range c.Intents {
			c.Intents[i].Agents, c.Intents[i].Domains = []string{fmt.Sprint("agent", i/3)}, c.Domains[i/3*6:i/3*6+1]
		}
		return c
	}},
}

// maxShortIntents is the maximum number of intents of a corpus that is trained with -short.
const maxShortIntents = 1_000

func BenchmarkClassify(b *testing.B) {
	for _, bc := range benchCorpora {
		c := bc.corpus()
		if testing.Short() && len(c.Intents) > maxShortIntents {
			continue // its training takes many seconds
		}
		m := lexical.Train(c)
		for name, text := range benchTexts(c) {
			b.Run(fmt.Sprintf("%s/%s", bc.name, name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					m.Classify(text)
				}
			})
		}
	}
}

// BenchmarkClassify_CostPerText measures a lower bound in plain Go: look up
// every word and every 3 to 5 characters of a text in a map (for Classify), and
// count those of all examples (for Train).
func BenchmarkClassify_CostPerText(b *testing.B) {
	c := syntheticCorpus(150, 100, 20, 1)
	counts := map[string]int{}
	countAll := func() {
		clear(counts)
		for _, d := range c.Intents {
			for _, e := range d.Examples {
				eachPiece(e, func(piece string) { counts[piece]++ })
			}
		}
	}
	countAll()
	text, sum := benchTexts(c)["request"], 0
	b.Run("classify/150 intents x 100 examples/request", func(b *testing.B) {
		for b.Loop() {
			eachPiece(text, func(piece string) { sum += counts[piece] })
		}
	})
	b.Run("train/150 intents x 100 examples", func(b *testing.B) {
		for b.Loop() {
			countAll()
		}
	})
}

func eachPiece(text string, do func(string)) {
	for word := range strings.FieldsSeq(text) {
		do(word)
		for n := 3; n <= 5; n++ {
			for i := 0; i+n <= len(word); i++ {
				do(word[i : i+n])
			}
		}
	}
}

// benchTexts are a request with words of the corpus, one without, and one of the maximum size.
func benchTexts(c lexical.Corpus) map[string]string {
	own := "review this python code"
	if e := c.Intents[len(c.Intents)/2].Examples; len(e) > 0 {
		own = "please " + e[0] + " for me and " + c.Domains[0]
	}
	return map[string]string{
		"request": own,
		"foreign": "what is the weather like in Lisbon today",
		"64 KiB":  strings.Repeat(own+". ", contract.MaxPromptBytes/(len(own)+2)),
	}
}

func BenchmarkModel_SplitClauses(b *testing.B) {
	m := lexical.Train(lexical.Corpus{})
	for name, text := range benchTexts(sourceCorpus()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.SplitClauses(text)
			}
		})
	}
}

func BenchmarkTrain(b *testing.B) {
	for _, bc := range benchCorpora {
		c := bc.corpus()
		b.Run(bc.name, func(b *testing.B) {
			if testing.Short() && len(c.Intents) > maxShortIntents {
				b.Skip("takes many seconds")
			}
			b.ReportAllocs()
			var m *lexical.Model
			for b.Loop() {
				m = lexical.Train(c)
			}
			b.ReportMetric(float64(m.SizeBytes())/1e6, "MB/model")
		})
	}
}
