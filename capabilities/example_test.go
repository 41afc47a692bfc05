package capabilities_test

import (
	"fmt"

	"github.com/caprouter/caprouter/capabilities"
)

func ExampleParse() {
	s, err := capabilities.Parse("capabilities.yaml", []byte(`
clients:
  quality_agent:
    match:
      intent: ["code_review"]
      domains: ["python"]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Catalogue.Agent("quality_agent").Match.Intent, s.Catalogue.Routing.ConfidenceThreshold)
	// Output: [code_review] 0.65
}

func ExampleParse_mistakes() {
	_, err := capabilities.Parse("capabilities.yaml", []byte(`
clients:
  Quality Agent:
    match:
      intents: ["code_review"]
    priority: high
`))
	fmt.Println(err)
	// Output:
	// capabilities.yaml:3:3: "Quality Agent" is not an agent id: up to 64 of a-z, 0-9, _ and -, with a letter first
	// capabilities.yaml:5:7: unknown key "intents"; did you mean "intent"?
	// capabilities.yaml:6:15: must be a whole number in decimal, got the text "high"
}

func ExampleLint() {
	s, err := capabilities.Load("testdata/source.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range capabilities.Lint(s)[:2] {
		fmt.Println(f.Severity, f.Rule, f.Message)
	}
	// Output:
	// warning endpoint-missing billing_agent has no endpoint: it can be chosen, but every task for it fails
	// warning endpoint-missing quality_agent has no endpoint: it can be chosen, but every task for it fails
}
