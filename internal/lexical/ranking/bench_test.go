package ranking_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/ranking"
)

func BenchmarkRank(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	docs := make([]ranking.Document, 200)
	for i := range docs {
		words := make([]string, 40)
		for k := range words {
			words[k] = fmt.Sprintf("word%x", random.IntN(2000))
		}
		docs[i] = ranking.Document{Name: fmt.Sprint("tool_", i), Description: strings.Join(words, " ")}
	}
	r := ranking.New(docs)
	b.ReportAllocs()
	for b.Loop() {
		r.Rank(docs[7].Description)
	}
}
