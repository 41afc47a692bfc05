package lexical_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/caprouter/caprouter/internal/lexical"
)

// sourceCorpus is a registry with names only.
func sourceCorpus() lexical.Corpus {
	var c lexical.Corpus
	for _, name := range []string{
		"code_review", "databricks_review", "serverless_review", "retrieval_qa", "doc_answering", "cost_analysis",
	} {
		c.Intents = append(c.Intents, lexical.IntentDoc{Name: name})
	}
	c.Domains = []string{"python", "databricks", "semaforo", "kb_internal", "docs", "azure"}
	return c
}

// richCorpus is sourceCorpus with examples in four languages and keywords.
func richCorpus() lexical.Corpus {
	c := sourceCorpus()
	examples := map[string][]string{
		"code_review": {
			"review my pull request", "check this function for bugs", "revise este código python",
			"revisa este código, por favor", "审查代码", "请检查这个函数的错误",
		},
		"databricks_review": {"look over my spark job", "revise este notebook databricks", "revisa mi cuaderno de databricks"},
		"retrieval_qa":      {"what is our vacation policy", "onde está a política de férias", "who are you"},
		"doc_answering":     {"what do the docs say about retries", "o que diz a documentação", "qué dice la documentación"},
		"cost_analysis": {
			"why did our cloud bill go up", "analise o custo no azure", "analiza el gasto de la nube", "分析云成本",
		},
	}
	keywords := map[string][]string{
		"code_review": {"pylint", "code smell"}, "databricks_review": {"pylint", "code smell"},
		"cost_analysis": {"invoice", "finops"},
	}
	for i := range c.Intents {
		c.Intents[i].Examples = examples[c.Intents[i].Name]
		c.Intents[i].Keywords = keywords[c.Intents[i].Name]
	}
	return c
}

// syntheticCorpus returns a registry of this size with random words that depend on the seed only.
func syntheticCorpus(intents, examples, wordsEach int, seed uint64) lexical.Corpus {
	random := rand.New(rand.NewPCG(seed, 1))
	common := vocabulary(random, 200)
	var c lexical.Corpus
	for i := range intents {
		own := vocabulary(random, wordsEach)
		d := lexical.IntentDoc{Name: fmt.Sprintf("%s_%s_%d", own[0], own[1], i), Keywords: own[2:4]}
		for range examples {
			var text []string
			for range 3 + random.IntN(8) {
				from := own
				if random.IntN(2) == 0 {
					from = common
				}
				text = append(text, from[random.IntN(len(from))])
			}
			d.Examples = append(d.Examples, strings.Join(text, " "))
		}
		c.Intents = append(c.Intents, d)
		c.Domains = append(c.Domains, own[4], own[5]+"_"+own[6])
	}
	return c
}

// vocabulary returns words of random open syllables, which share about as many n-grams as those of
// a natural language.
func vocabulary(random *rand.Rand, n int) []string {
	const consonants, vowels = "bcdfghjklmnpqrstvwxz", "aeiou"
	list := make([]string, n)
	for i := range list {
		var b strings.Builder
		for range 2 + random.IntN(3) {
			b.WriteByte(consonants[random.IntN(len(consonants))])
			b.WriteByte(vowels[random.IntN(len(vowels))])
		}
		list[i] = b.String()
	}
	return list
}
