package agentkit

import (
	"encoding/json"
	"fmt"

	"github.com/caprouter/caprouter/contract"
)

// Prompt returns the user's complete prompt. If the request has several subtasks, it also
// contains those of other agents; the SubtaskTitle of the task is the part for this agent.
func Prompt(t contract.Task) string {
	var prompt string
	_ = json.Unmarshal(t.Inputs["prompt"], &prompt) // the router sends a string; "" if it is absent
	return prompt
}

// Input decodes the named input of the task into the variable v points at. If the
// caller sent no such input, ok is false.
func Input(t contract.Task, name string, v any) (ok bool, err error) {
	raw, ok := t.Inputs[name]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return true, fmt.Errorf("input %q: %w", name, err)
	}
	return true, nil
}

// Answer returns a success with a text for people.
func Answer(text string) contract.Result {
	raw, _ := json.Marshal(text) // a string cannot fail
	return contract.Result{
		Status: contract.ResultSuccess,
		Data:   map[string]json.RawMessage{"answer": raw},
	}
}

// Failure returns a failure with an explanation for the caller.
func Failure(reason string) contract.Result {
	return contract.Result{Status: contract.ResultFailure, Explanations: []string{reason}}
}

// Data encodes the values as the data of a Result.
func Data(values map[string]any) (map[string]json.RawMessage, error) {
	data := make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("data %q: %w", name, err)
		}
		data[name] = raw
	}
	return data, nil
}
