package classifier_test

import (
	"testing"

	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/internal/lexical"
)

// FuzzClassify classifies arbitrary bytes.
func FuzzClassify(f *testing.F) {
	for _, seed := range []string{
		"", "Please do a code review of this python module", "review my java and python code",
		"Review this python code and do a cost analysis of our azure bill", "Revise este notebook Databricks e analise o custo no Azure",
		"请审查Python代码，然后分析Azure成本", "1. code review\n2. cost analysis\n3. doc answering\n4. retrieval qa",
		"code review:\n```py\nx; y\n```cost analysis", "code review;```cost analysis\n", "\u202ecode review\u202c; 🎉 cost\xff analysis",
	} {
		f.Add(seed)
	}
	c := newClassifier(f)
	s := exampleRegistry()
	model := lexical.Train(classifier.BuildCorpus(s))
	f.Fuzz(func(t *testing.T, prompt string) {
		clf := c.Classify(t.Context(), classifier.Input{Prompt: prompt, Catalogue: s, Lexical: model})
		checkValid(t, s, &clf)
	})
}
