package policy

import (
	"encoding/json"
	"fmt"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// FileTest is a test in a policy file: a call and the expected decision.
type FileTest struct {
	ID     string     `yaml:"id" validate:"required,max=100"`
	Call   TestCall   `yaml:"call"`
	Expect TestExpect `yaml:"expect"`
}

// TestCall is the call of a FileTest. Arguments and outputs are JSON in a text.
type TestCall struct {
	Server      string      `yaml:"server" validate:"required"`
	Tool        string      `yaml:"tool" validate:"required"`
	Arguments   string      `yaml:"arguments"` // a JSON object; "" = {}
	Description string      `yaml:"description"`
	InputSchema string      `yaml:"input_schema"` // JSON
	Annotations Annotations `yaml:"annotations"`
	Transport   string      `yaml:"transport" validate:"omitempty,oneof=stdio http sse rest"`
	Host        string      `yaml:"host"`
	Goal        string      `yaml:"goal"`
	EnvContext  string      `yaml:"env_context"` // a JSON object
	Earlier     []TestStep  `yaml:"earlier" validate:"dive"`
}

// TestStep is an earlier call of a FileTest.
type TestStep struct {
	Action    string `yaml:"action" validate:"required"`
	Arguments string `yaml:"arguments"` // a JSON object
	Output    string `yaml:"output"`    // JSON, or any other text
}

// TestExpect is the expected decision.
type TestExpect struct {
	Effect   Effect   `yaml:"effect" validate:"oneof=allow deny gate"`
	Rule     string   `yaml:"rule"` // "" = any
	Category Category `yaml:"category" validate:"omitempty,oneof=network filesystem_read filesystem_write credentials exfiltration execution destructive restriction"`
}

// TestResult is the result of a FileTest.
type TestResult struct {
	ID      string     `json:"id"`
	Passed  bool       `json:"passed"`
	Want    TestExpect `json:"want"`
	Verdict Verdict    `json:"verdict"`
}

// RunTests runs the tests of the policy file in their order.
func (p *Policy) RunTests() []TestResult {
	results := make([]TestResult, len(p.tests))
	for i := range p.tests {
		t := &p.tests[i]
		v := p.Judge(t.Call.build())
		results[i] = TestResult{
			ID: t.ID, Want: t.Expect, Verdict: v,
			Passed: v.Effect == t.Expect.Effect && (t.Expect.Rule == "" || t.Expect.Rule == v.Rule) && (t.Expect.Category == "" || t.Expect.Category == v.Category),
		}
	}
	return results
}

// build returns the call.
func (t *TestCall) build() *Call {
	c := &Call{
		Server: t.Server, Tool: t.Tool, Arguments: json.RawMessage(t.Arguments), Description: t.Description,
		InputSchema: json.RawMessage(t.InputSchema), Annotations: t.Annotations, Transport: t.Transport, Host: t.Host,
		Goal: t.Goal, EnvContext: json.RawMessage(t.EnvContext),
	}
	for _, s := range t.Earlier {
		output := json.RawMessage(s.Output)
		if jsonProblem(s.Output) != "" || s.Output == "" {
			output, _ = strictjson.Marshal(s.Output) // a string is always JSON
		}
		c.Earlier = append(c.Earlier, Step{Action: s.Action, Arguments: json.RawMessage(s.Arguments), Output: output})
	}
	return c
}

// jsonProblem returns why a text is not JSON, or "".
func jsonProblem(text string) string {
	if text == "" {
		return ""
	}
	var v any
	if err := strictjson.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Sprintf("is not JSON: %v", err)
	}
	return ""
}

// checkTests checks the JSON of the tests, and that their ids are unique.
func checkTests(doc *strictyaml.Document, tests []FileTest) {
	ids := map[string]int{}
	for i := range tests {
		t := &tests[i]
		at := strictyaml.At("tests", i)
		if first, ok := ids[t.ID]; ok && t.ID != "" {
			doc.Errorf(at.At("id"), "is the id of tests[%d], too", first)
		} else {
			ids[t.ID] = i
		}
		check := func(at strictyaml.Path, text string) {
			if problem := jsonProblem(text); problem != "" {
				doc.Errorf(at, "%s", problem)
			}
		}
		check(at.At("call", "arguments"), t.Call.Arguments)
		check(at.At("call", "input_schema"), t.Call.InputSchema)
		check(at.At("call", "env_context"), t.Call.EnvContext)
		for n := range t.Call.Earlier {
			check(at.At("call", "earlier", n, "arguments"), t.Call.Earlier[n].Arguments)
		}
	}
}
