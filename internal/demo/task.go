package demo

import (
	"maps"
	"strings"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

// newResult returns a result with an answer for people and further data.
func newResult(status contract.ResultStatus, answer string, data map[string]any, metrics map[string]float64, explanation string) (contract.Result, error) {
	values := maps.Clone(data)
	values["answer"] = answer
	encoded, err := agentkit.Data(values)
	return contract.Result{Status: status, Data: encoded, Metrics: metrics, Explanations: []string{explanation}}, err
}

// textInput returns an input of the task, or "" if it is missing or not a string.
func textInput(task contract.Task, name string) string {
	var text string
	if ok, err := agentkit.Input(task, name, &text); !ok || err != nil {
		return ""
	}
	return text
}

// codeBlock returns the content of the first fenced code block of a text, "" if
// there is none. A block without an end extends to the end of the text.
func codeBlock(text string) string {
	var block strings.Builder
	open := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			if open {
				return block.String()
			}
			open = true
		case open:
			block.WriteString(line)
		}
	}
	return block.String()
}
