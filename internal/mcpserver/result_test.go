package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
)

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNewToolResult(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result contract.ActionResult
		want   string
	}{
		{"text", contract.ActionResult{Type: "text", Content: json.RawMessage(`"a"`)}, `{"content":[{"type":"text","text":"a"}]}`},
		{"image", contract.ActionResult{Type: "image", Content: json.RawMessage(`"AQI="`), MIMEType: "image/png"}, `{"content":[{"type":"image","mimeType":"image/png","data":"AQI="}]}`},
		{"address of a sound", contract.ActionResult{Type: "audio", Content: json.RawMessage(`"https://h/a.mp3"`), MIMEType: "audio/mp3"}, `{"content":[{"type":"resource_link","mimeType":"audio/mp3","uri":"https://h/a.mp3","name":"audio"}]}`},
		{"several blocks", contract.ActionResult{Type: "tool_result", Content: json.RawMessage(`[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"f:/a","text":"b"}}]`), Structured: json.RawMessage(`{"n":1}`)}, `{"content":[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"f:/a","text":"b"}}],"structuredContent":{"n":1}}`},
		{"another array", contract.ActionResult{Type: "tool_result", Content: json.RawMessage(`[1]`)}, `{"content":[{"type":"text","text":"[1]"}]}`},
		{"structured content that is no object", contract.ActionResult{Type: "tool_result", Content: json.RawMessage(`[]`), Structured: json.RawMessage(` [1]`)}, `{"content":[{"type":"text","text":" [1]"}]}`},
		{"and has a text", contract.ActionResult{Type: "tool_result", Content: json.RawMessage(`[{"type":"text","text":"a"}]`), Structured: json.RawMessage(`"<redacted>"`)}, `{"content":[{"type":"text","text":"a"}]}`},
		{"an object as text", contract.ActionResult{Type: "text", Content: json.RawMessage(`{"a":1}`)}, `{"content":[{"type":"text","text":"{\"a\":1}"}]}`},
	} {
		if diff := cmp.Diff(tt.want, encode(t, newToolResult(&tt.result))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestNewTool_DeclaresObjects(t *testing.T) {
	object := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	for _, tt := range []struct{ parameters, output, wantInput, wantOutput json.RawMessage }{
		{object, object, object, object},
		{nil, nil, emptyObject, nil},
		{json.RawMessage(`true`), json.RawMessage(`{"type":"array"}`), emptyObject, nil},
	} {
		got := newTool("n", &gateway.Tool{Parameters: tt.parameters, OutputSchema: tt.output})
		if encode(t, got.InputSchema) != string(tt.wantInput) {
			t.Errorf("input %s: got %s, want %s", tt.parameters, got.InputSchema, tt.wantInput)
		}
		if output, _ := got.OutputSchema.(json.RawMessage); string(output) != string(tt.wantOutput) {
			t.Errorf("output %s: got %s, want %s", tt.output, output, tt.wantOutput)
		}
	}
}

func TestResponseText(t *testing.T) {
	for _, tt := range []struct {
		name string
		resp contract.Response
		want string
	}{
		{"question", contract.Response{
			RequestID: "r1", Status: contract.StatusClarify,
			Data: contract.ResponseData{Mode: contract.DataClarification, Question: "Which one?", Options: []contract.ClarificationOption{{ID: "o1", Label: "a refund"}}},
		}, "Which one?\n- o1: a refund\n" + `Call route_request again with the same prompt and "clarification": {"request_id": "r1", "option_id": …}.`},
		{"failed task", contract.Response{
			Status: contract.StatusPartial, Data: contract.ResponseData{Answer: "done"},
			Tasks:   []contract.TaskReport{{AgentID: "b", Error: &contract.TaskError{Code: contract.TaskAgentUnavailable, Detail: "no connection"}}},
			Omitted: []contract.Omitted{{Title: "a rest", Reason: "no_match"}},
		}, "done\nb: agent_unavailable: no connection\nleft out: a rest: no_match"},
		{"unsupported", contract.Response{
			Status: contract.StatusUnsupported, Data: contract.ResponseData{Mode: contract.DataUnsupported, Unsupported: &contract.Unsupported{Detail: "No agent does this."}},
		}, "No agent does this."},
		{"data without text", contract.Response{
			Status: contract.StatusCompleted, Data: contract.ResponseData{Results: []contract.AgentResult{{AgentID: "a", Data: map[string]json.RawMessage{"n": json.RawMessage("1")}}}},
		}, `a: {"n":1}`},
		{"nothing", contract.Response{Status: contract.StatusRunning}, "running"},
	} {
		if diff := cmp.Diff(tt.want, strings.TrimSpace(responseText(&tt.resp))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
