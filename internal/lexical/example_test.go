package lexical_test

import (
	"fmt"

	"github.com/caprouter/caprouter/internal/lexical"
)

func ExampleModel_Classify() {
	m := lexical.Train(lexical.Corpus{
		Intents: []lexical.IntentDoc{{Name: "code_review"}, {Name: "cost_analysis"}},
		Domains: []string{"python", "azure"},
	})
	for _, text := range []string{
		"Please do a code review of this python module",
		"how much does azure cost",
		"tell me a joke",
	} {
		p := m.Classify(text)
		fmt.Printf("%s %.1f %s\n", p.Intent, p.Confidence, p.Domains)
	}
	// Output:
	// code_review 1.0 [python]
	// cost_analysis 0.9 [azure]
	// unknown 0.0 []
}

func ExampleModel_SplitClauses() {
	m := lexical.Train(lexical.Corpus{})
	for _, part := range m.SplitClauses("Review app.py, e.g. its tests, and then check the cost; thanks. Bye!") {
		fmt.Printf("%q\n", part)
	}
	// Output:
	// "Review app.py, e.g. its tests"
	// "check the cost"
	// "thanks"
	// "Bye!"
}

func ExampleModel_NearestExamples() {
	m := lexical.Train(lexical.Corpus{Intents: []lexical.IntentDoc{
		{Name: "code_review", Examples: []string{"review my pull request", "check this function for bugs"}},
		{Name: "cost_analysis", Examples: []string{"why did our cloud bill go up"}},
	}})
	anything := func(intent, example string) bool { return true }
	fmt.Println(m.NearestExamples("check the bugs in my pull request", 2, anything))
	// Output: [check this function for bugs review my pull request]
}
