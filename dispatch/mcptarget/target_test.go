package mcptarget_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/dispatch/mcptarget"
)

// invoker is a fake gateway. It answers each call with the next result or error; the last one is
// repeated.
type invoker struct {
	results []any
	calls   []*mcptarget.Call
}

func (i *invoker) InvokeForTask(ctx context.Context, call *mcptarget.Call) (*contract.ActionResult, error) {
	next := i.results[min(len(i.calls), len(i.results)-1)]
	i.calls = append(i.calls, call)
	switch r := next.(type) {
	case *contract.ActionResult:
		return r, nil
	case error:
		return nil, r
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func newCall(arguments map[string]contract.Argument) dispatch.Call {
	return dispatch.Call{
		Agent: &contract.RegistryEntry{ID: "weather_agent", Endpoint: contract.Endpoint{Protocol: "mcp", Action: "weather.query", Arguments: arguments}},
		Task: contract.Task{
			TaskID: "t1", Intent: "weather", SubtaskTitle: "Weather", Locale: "en", SessionID: "s1", Inputs: map[string]json.RawMessage{
				"prompt": json.RawMessage(`"What is the weather in Madrid today?"`), "days": json.RawMessage(`3`), "place": json.RawMessage(`{"lat":1}`),
			},
		},
	}
}

func execute(t *testing.T, i *invoker, c dispatch.Call) dispatch.Outcome {
	t.Helper()
	target, err := mcptarget.New(i, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return target.Execute(ctx, c)
}

func TestExecute_BuildsArguments(t *testing.T) {
	i := &invoker{results: []any{&contract.ActionResult{Type: "text", Content: json.RawMessage(`"sun"`)}}}
	out := execute(t, i, newCall(map[string]contract.Argument{
		"text":    {From: "prompt"},
		"city":    {From: "prompt", Match: `(?i)weather in (\w+)`},
		"word":    {From: "prompt", Match: `Madrid`},
		"country": {From: "prompt", Match: `in (Spain)`, Default: "ES"},
		"absent":  {From: "prompt", Match: `in (Spain)`},
		"days":    {From: "inputs.days"},
		"place":   {From: "inputs.place"},
		"none":    {From: "inputs.none"},
		"half":    {From: "inputs.none", Default: "0.5", Type: "number"},
		"flag":    {Default: "true", Type: "boolean"},
		"intent":  {From: "intent"}, "title": {From: "subtask"}, "locale": {From: "locale"}, "session": {From: "session_id"},
	}))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	want := `{"city":"Madrid","country":"ES","days":3,"flag":true,"half":0.5,"intent":"weather","locale":"en","place":{"lat":1},` +
		`"session":"s1","text":"What is the weather in Madrid today?","title":"Weather","word":"Madrid"}`
	got := i.calls[0]
	if string(got.Action.Input) != want || got.Action.Action != "weather.query" || got.Action.Context.SessionID != "s1" {
		t.Errorf("got %s of %s, want %s", got.Action.Input, got.Action.Action, want)
	}
}

func TestExecute_RejectsArgumentOfAnotherType(t *testing.T) {
	i := &invoker{}
	out := execute(t, i, newCall(map[string]contract.Argument{"days": {From: "prompt", Type: "integer"}}))
	if out.Err == nil || out.Err.Code != contract.TaskAgentUnavailable || out.MayHaveExecuted || len(i.calls) != 0 ||
		!strings.Contains(out.Err.Detail, "the argument days") {
		t.Errorf("got %+v after %d calls, want an error about the argument and no call", out.Err, len(i.calls))
	}
}

// An argument that the tool requires, and for which the request has no value, is an error of the
// caller. One that the registry does not map, and a value that does not match, are not.
func TestExecute_NamesMissingArguments(t *testing.T) {
	arguments := map[string]contract.Argument{
		"city": {From: "prompt", Match: `near (\w+)`}, "unit": {From: "inputs.unit"}, "days": {From: "inputs.days"}, "who": {From: "session_id"},
	}
	for name, tc := range map[string]struct {
		missing []string
		want    contract.TaskError
	}{
		"of the prompt":      {[]string{"city"}, contract.TaskError{Code: "invalid_input", Detail: "weather_agent needs a value for city: the prompt has none"}},
		"several":            {[]string{"unit", "city"}, contract.TaskError{Code: "invalid_input", Detail: "weather_agent needs a value for city: the prompt has none; and for unit: the request has no inputs.unit"}},
		"not mapped":         {[]string{"city", "zip"}, contract.TaskError{Code: "agent_unavailable", Detail: "weather_agent cannot be called: m"}},
		"of a nested object": {[]string{"days"}, contract.TaskError{Code: "agent_unavailable", Detail: "weather_agent cannot be called: m"}},
		"none":               {nil, contract.TaskError{Code: "agent_unavailable", Detail: "weather_agent cannot be called: m"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := &invoker{results: []any{&contract.ActionError{Code: contract.ActionInvalidInput, Message: "m", Missing: tc.missing}}}
			out := execute(t, i, newCall(arguments))
			if diff := cmp.Diff(&tc.want, out.Err); diff != "" || out.MayHaveExecuted || out.Health != dispatch.HealthGood {
				t.Errorf("got health %d, may have executed %v, error (-want +got):\n%s", out.Health, out.MayHaveExecuted, diff)
			}
		})
	}
}

func TestExecute_Results(t *testing.T) {
	for name, tc := range map[string]struct {
		result any
		want   contract.Result
	}{
		"text": {&contract.ActionResult{Type: "text", Content: json.RawMessage(`"sun"`), MIMEType: "text/plain"}, contract.Result{
			TaskID: "t1", Status: "success", Data: map[string]json.RawMessage{"type": json.RawMessage(`"text"`), "content": json.RawMessage(`"sun"`), "answer": json.RawMessage(`"sun"`)},
		}},
		"image": {&contract.ActionResult{Type: "image", Content: json.RawMessage(`"cG5n"`), MIMEType: "image/png"}, contract.Result{
			TaskID: "t1", Status: "success", Data: map[string]json.RawMessage{"type": json.RawMessage(`"image"`), "content": json.RawMessage(`"cG5n"`), "mime_type": json.RawMessage(`"image/png"`)},
		}},
		"blocks": {&contract.ActionResult{
			Type: "tool_result", Content: json.RawMessage(`[{"type":"text","text":"a"},{"type":"image","data":"x"},{"type":"text","text":"b"}]`), Structured: json.RawMessage(`{"n":1}`),
		}, contract.Result{TaskID: "t1", Status: "success", Data: map[string]json.RawMessage{
			"type": json.RawMessage(`"tool_result"`), "answer": json.RawMessage(`"a\nb"`), "structured_content": json.RawMessage(`{"n":1}`),
			"content": json.RawMessage(`[{"type":"text","text":"a"},{"type":"image","data":"x"},{"type":"text","text":"b"}]`),
		}}},
		"error of the tool": {&contract.ActionError{Code: "PLACE_NOT_FOUND", Message: "m", Suggestion: "s", Severity: "WARNING"}, contract.Result{
			TaskID: "t1", Status: "failure", Explanations: []string{"m"},
			Data: map[string]json.RawMessage{"error_code": json.RawMessage(`"PLACE_NOT_FOUND"`), "severity": json.RawMessage(`"WARNING"`), "suggestion": json.RawMessage(`"s"`)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			out := execute(t, &invoker{results: []any{tc.result}}, newCall(nil))
			if diff := cmp.Diff(&tc.want, out.Result); diff != "" || out.Health != dispatch.HealthGood {
				t.Errorf("health %d, result (-want +got):\n%s", out.Health, diff)
			}
		})
	}
}

func TestExecute_Failures(t *testing.T) {
	type verdict struct {
		Code            contract.TaskCode
		MayHaveExecuted bool
		Health          dispatch.Health
		Calls           int
	}
	large := &contract.ActionResult{Type: "text", Content: json.RawMessage(`"` + strings.Repeat("x", 4<<20) + `"`)}
	for code, want := range map[string][2]verdict{ // not idempotent, idempotent
		contract.ActionUnavailable:    {{"agent_unavailable", false, dispatch.HealthBad, 1}, {"agent_unavailable", false, dispatch.HealthBad, 1}},
		contract.ActionOutcomeUnknown: {{"outcome_unknown", true, dispatch.HealthBad, 1}, {"agent_unavailable", false, dispatch.HealthBad, 2}},
		contract.ActionTimeout:        {{"deadline_exceeded", false, dispatch.HealthUnknown, 1}, {"deadline_exceeded", false, dispatch.HealthUnknown, 1}},
		contract.ActionBadResult:      {{"bad_result", true, dispatch.HealthBad, 1}, {"bad_result", false, dispatch.HealthBad, 1}},
		contract.ActionInvalidInput:   {{"agent_unavailable", false, dispatch.HealthGood, 1}, {"agent_unavailable", false, dispatch.HealthGood, 1}},
		contract.ActionForbidden:      {{"agent_unavailable", false, dispatch.HealthGood, 1}, {"agent_unavailable", false, dispatch.HealthGood, 1}},
		contract.ActionQuarantined:    {{"agent_unavailable", false, dispatch.HealthGood, 1}, {"agent_unavailable", false, dispatch.HealthGood, 1}},
		contract.ActionRateLimited:    {{"agent_unavailable", false, dispatch.HealthUnknown, 1}, {"agent_unavailable", false, dispatch.HealthUnknown, 2}},
		contract.ActionNotRecorded:    {{"agent_unavailable", false, dispatch.HealthUnknown, 1}, {"agent_unavailable", false, dispatch.HealthUnknown, 1}},
		"too large":                   {{"bad_result", true, dispatch.HealthBad, 1}, {"bad_result", false, dispatch.HealthBad, 1}},
	} {
		t.Run(code, func(t *testing.T) {
			for n, want := range want {
				i := &invoker{results: []any{&contract.ActionError{Code: code, Message: "m", Severity: "SEVERE"}}}
				if code == "too large" {
					i.results[0] = large
				}
				c := newCall(nil)
				c.Agent.Endpoint.Idempotent = n == 1
				out := execute(t, i, c)
				if out.Err == nil {
					t.Fatalf("got %+v, want an error", out.Result)
				}
				if diff := cmp.Diff(want, verdict{out.Err.Code, out.MayHaveExecuted, out.Health, len(i.calls)}); diff != "" {
					t.Errorf("idempotent %v (-want +got):\n%s", n == 1, diff)
				}
			}
		})
	}
}

// The suggestion may name tools that the caller may not know, so only the log contains it.
func TestExecute_LogsSuggestion(t *testing.T) {
	var log strings.Builder
	notFound := &contract.ActionError{
		Code: contract.ActionNotFound, Message: `there is no action "weather.query"`, Suggestion: "did you mean weather.forecast?", Severity: "WARNING",
	}
	target, err := mcptarget.New(&invoker{results: []any{notFound}}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	out := target.Execute(t.Context(), newCall(nil))
	if out.Err == nil || strings.Contains(out.Err.Detail, "forecast") {
		t.Errorf("got %+v, want an error without the suggestion", out.Err)
	}
	if want := `suggestion="did you mean weather.forecast?"`; !strings.Contains(log.String(), want) {
		t.Errorf("got log %s, want %s", log.String(), want)
	}
}

func TestExecute_EndsWithItsContext(t *testing.T) {
	target, err := mcptarget.New(&invoker{results: []any{nil}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out := target.Execute(ctx, newCall(nil)); out.Err == nil || out.Err.Code != contract.TaskWasCancelled || out.MayHaveExecuted {
		t.Errorf("got %+v, want a cancelled task that was not sent", out)
	}
}
