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
	{"150 intents x 100 examples", func() lexical.Corpus { return syntheticCorpus(150, 100, 20, 1) }},
	{"1000 agents, 3000 intents x 5 examples", func() lexical.Corpus { return syntheticCorpus(3000, 5, 20, 1) }},
}

func BenchmarkClassify(b *testing.B) {
	for _, bc := range benchCorpora {
		c := bc.corpus()
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

// benchTexts are a request made of the corpus's own words, one that has nothing
// of them, and one of the greatest size.
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

func BenchmarkSegments(b *testing.B) {
	m := lexical.Train(lexical.Corpus{})
	for name, text := range benchTexts(sourceCorpus()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Segments(text)
			}
		})
	}
}

func BenchmarkTrain(b *testing.B) {
	for _, bc := range benchCorpora {
		c := bc.corpus()
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lexical.Train(c)
			}
		})
	}
}
