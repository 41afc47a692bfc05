package mcptarget

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// buildInput returns the input of a tool for a task. An argument without a value is
// absent; the schema of the tool decides whether it is required.
func buildInput(task *contract.Task, arguments map[string]contract.Argument) ([]byte, error) {
	input := make(map[string]json.RawMessage, len(arguments))
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		a := arguments[name]
		value, err := argumentValue(task, &a)
		if err != nil {
			return nil, fmt.Errorf("the argument %s: %w", name, err)
		}
		if value != nil {
			input[name] = value
		}
	}
	return strictjson.Marshal(input)
}

// argumentValue returns the value of an argument, nil if there is none.
func argumentValue(task *contract.Task, a *contract.Argument) (json.RawMessage, error) {
	raw := sourceValue(task, a.From)
	if raw == nil && a.Default == "" {
		return nil, nil
	}
	text, isText := a.Default, true
	if raw != nil {
		var s string
		if isText = strictjson.Unmarshal(raw, &s) == nil; isText {
			text = s
		}
	}
	switch {
	case !isText && (a.Match == "" && a.Type == ""):
		return raw, nil // any JSON value of the inputs
	case !isText:
		text = string(raw)
	}
	if raw != nil && a.Match != "" {
		if text = findMatch(a.Match, text); text == "" {
			text = a.Default
		}
	}
	if text == "" {
		return nil, nil
	}
	return a.Convert(text)
}

// sourceValue returns the part of a task as JSON, nil if it is absent.
func sourceValue(task *contract.Task, from string) json.RawMessage {
	var text string
	switch from {
	case contract.FromPrompt:
		return task.Inputs[contract.FromPrompt]
	case contract.FromSubtask:
		text = task.SubtaskTitle
	case contract.FromIntent:
		text = task.Intent
	case contract.FromLocale:
		text = task.Locale
	case contract.FromSessionID:
		text = task.SessionID
	default:
		return task.Inputs[strings.TrimPrefix(from, contract.FromInputPrefix)]
	}
	if text == "" {
		return nil
	}
	return strictjson.QuoteString(text)
}

// findMatch returns the first group of the first match, or the match if there is no group.
// The registry has checked the expression.
func findMatch(expression, text string) string {
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return ""
	}
	groups := compiled.FindStringSubmatch(text)
	if groups == nil {
		return ""
	}
	return strings.TrimSpace(groups[len(groups)-1])
}

// newResult returns the Result of a task for that of a tool.
func newResult(taskID string, r *contract.ActionResult) *contract.Result {
	data := map[string]json.RawMessage{"type": strictjson.QuoteString(r.Type), "content": r.Content}
	if r.Structured != nil {
		data["structured_content"] = r.Structured
	}
	if r.MIMEType != "" && r.Type != contract.ActionText {
		data["mime_type"] = strictjson.QuoteString(r.MIMEType)
	}
	if answer := textOf(r); answer != "" {
		data["answer"] = strictjson.QuoteString(answer)
	}
	return &contract.Result{TaskID: taskID, Status: contract.ResultSuccess, Data: data}
}

// textOf returns the text of a result: of a text, or of the blocks that are texts.
func textOf(r *contract.ActionResult) string {
	if r.Type == contract.ActionText {
		var text string
		_ = strictjson.Unmarshal(r.Content, &text) // "" if it is no text
		return text
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if r.Type != contract.ActionToolResult || strictjson.UnmarshalAllowUnknown(r.Content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if b.Type == "text" && b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// newFailure returns the Result of a task whose tool reports an error.
func newFailure(taskID string, e *contract.ActionError) *contract.Result {
	data := map[string]json.RawMessage{"error_code": strictjson.QuoteString(e.Code), "severity": strictjson.QuoteString(e.Severity)}
	if e.Suggestion != "" {
		data["suggestion"] = strictjson.QuoteString(e.Suggestion)
	}
	return &contract.Result{TaskID: taskID, Status: contract.ResultFailure, Data: data, Explanations: []string{e.Message}}
}
