package lexical_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical"
)

// TestTrain_OneMoreExampleMovesUnrelatedTextsLittle adds one example to a small corpus, and
// compares the confidence in requests that share no word with it. The words consist of random
// syllables, so that they share no parts of words either.
func TestTrain_OneMoreExampleMovesUnrelatedTextsLittle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(prefix string) string {
		var b strings.Builder
		b.WriteString(prefix)
		for range 3 {
			b.WriteByte("bcdfglmnprst"[random.IntN(12)])
			b.WriteByte("aeiou"[random.IntN(5)])
		}
		return b.String()
	}
	var moves []float64
	for range 40 {
		intents, examples := 4+random.IntN(5), 3+random.IntN(6)
		var corpus lexical.Corpus
		var requests []string
		vocabulary := make([][]string, intents)
		sentence := func(i int) string {
			var words []string
			for range 4 {
				words = append(words, vocabulary[i][random.IntN(len(vocabulary[i]))])
			}
			return strings.Join(words, " ")
		}
		for i := range intents {
			for range 10 {
				vocabulary[i] = append(vocabulary[i], word(""))
			}
			doc := lexical.IntentDoc{Name: fmt.Sprintf("%s_%s", vocabulary[i][0], vocabulary[i][1]), Agents: []string{fmt.Sprint("agent", i)}}
			for range examples {
				doc.Examples = append(doc.Examples, sentence(i))
			}
			corpus.Intents = append(corpus.Intents, doc)
			requests = append(requests, sentence(i), sentence(i)+" "+word("x")+" "+word("x"))
		}
		before := lexical.Train(corpus)
		corpus.Intents[0].Examples = append(corpus.Intents[0].Examples, strings.Join([]string{word("zw"), word("zw"), word("zw"), word("zw")}, " "))
		after := lexical.Train(corpus)
		for _, request := range requests {
			a, b := before.Classify(request), after.Classify(request)
			if a.BestIntent == b.BestIntent {
				moves = append(moves, math.Abs(a.Confidence-b.Confidence))
			} else {
				moves = append(moves, a.Confidence+b.Confidence)
			}
		}
	}
	slices.Sort(moves)
	if p99 := moves[len(moves)*99/100]; p99 > 0.1 {
		t.Errorf("got the confidence of 1 %% of %d requests changed by more than %.3f, want at most 0.1 (median %.3f, maximum %.3f)",
			len(moves), p99, moves[len(moves)/2], moves[len(moves)-1])
	}
}
