package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway/schema"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// checkCriterion returns the mistake in a criterion, "" if there is none.
func checkCriterion(c *contract.SuccessCriterion) string {
	kinds := 0
	for _, set := range []bool{c.Contains != "", c.Equals != nil, c.Schema != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return "must have one of contains, equals and schema"
	case c.JSONPath != "" && c.Equals == nil:
		return "jsonpath needs equals"
	}
	if c.JSONPath != "" {
		if _, err := parseJSONPath(c.JSONPath); err != nil {
			return "jsonpath " + err.Error()
		}
	}
	if c.Schema != nil {
		if _, err := schema.Compile(c.Schema); err != nil {
			return "schema " + err.Error()
		}
	}
	return ""
}

// Deterministic is the verifier that checks the success criteria of the plan.
type Deterministic struct{}

// Verify implements Verifier.
func (Deterministic) Verify(_ context.Context, req *VerifyRequest) (*Verdict, error) {
	outputs := outputsByStep(req.Outputs)
	v := &Verdict{}
	for i := range req.Plan.Steps {
		v.Findings = append(v.Findings, unmetCriteria(i, &req.Plan.Steps[i], outputs[req.Plan.Steps[i].ID])...)
	}
	v.Passed = len(v.Findings) == 0
	return v, nil
}

func outputsByStep(list []contract.ToolOutput) map[string]*contract.ToolOutput {
	outputs := map[string]*contract.ToolOutput{}
	for i := range list {
		outputs[list[i].StepID] = &list[i]
	}
	return outputs
}

// unmetCriteria returns the criteria of a step that its output does not meet.
func unmetCriteria(i int, s *contract.PlanStep, out *contract.ToolOutput) []Finding {
	if out == nil || out.Status != contract.OutputOK {
		return []Finding{{StepID: s.ID, Pointer: fmt.Sprintf("/steps/%d", i), Detail: "the step has no output"}}
	}
	var findings []Finding
	for n := range s.SuccessCriteria {
		if detail := unmetReason(&s.SuccessCriteria[n], out.Result); detail != "" {
			findings = append(findings, Finding{StepID: s.ID, Pointer: fmt.Sprintf("/steps/%d/success_criteria/%d", i, n), Detail: detail})
		}
	}
	return findings
}

// unmetReason returns why an output does not meet a criterion, "" if it does. The detail does
// not quote the output.
func unmetReason(c *contract.SuccessCriterion, r *contract.ActionResult) string {
	value := outputValue(r)
	switch {
	case c.Contains != "":
		if !strings.Contains(outputText(r), c.Contains) {
			return fmt.Sprintf("the output does not contain %.100q", c.Contains)
		}
	case c.Schema != nil:
		compiled, err := schema.Compile(c.Schema)
		if err == nil {
			err = compiled.Validate(value)
		}
		if err != nil {
			return "the output does not match the schema: " + err.Error()
		}
	case c.JSONPath != "":
		p, err := parseJSONPath(c.JSONPath)
		if err != nil {
			return err.Error()
		}
		found, ok := p.find(value)
		if !ok {
			return fmt.Sprintf("the output has no value at %.100s", c.JSONPath)
		}
		if !equalJSON(found, c.Equals) {
			return fmt.Sprintf("the value at %.100s is not %.100s", c.JSONPath, c.Equals)
		}
	case !equalJSON(value, c.Equals):
		return fmt.Sprintf("the output is not %.100s", c.Equals)
	}
	return ""
}

// outputValue returns what references and criteria see of a result: its structured
// content; or else the JSON in its text, if it is an object or an array; or else its
// content.
func outputValue(r *contract.ActionResult) json.RawMessage {
	if r == nil {
		return nil
	}
	if len(r.Structured) > 0 {
		return r.Structured
	}
	if text := outputText(r); r.Type == contract.ActionText {
		var value json.RawMessage
		if k := kindOf(json.RawMessage(text)); (k == '{' || k == '[') && strictjson.Unmarshal([]byte(text), &value) == nil {
			return value
		}
	}
	return r.Content
}

// outputText returns the text of a result: of all blocks of text, or the JSON of its
// structured content if there are none.
func outputText(r *contract.ActionResult) string {
	if r == nil {
		return ""
	}
	if r.Type != contract.ActionToolResult {
		return textOf(r.Content)
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	var texts []string
	if strictjson.UnmarshalAllowUnknown(r.Content, &blocks) == nil {
		for _, b := range blocks {
			if b.Text != "" {
				texts = append(texts, b.Text)
			}
		}
	}
	if len(texts) == 0 {
		return string(r.Structured)
	}
	return strings.Join(texts, "\n")
}
