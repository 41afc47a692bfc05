package strictjson_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// document is a document of a contract with the pointers that are invalid in it.
type document struct {
	name, text string
	want       []string // JSON pointers; "" is the whole document; nil = valid
}

var whole = []string{""}

// TestUnmarshal_ContractRequest decodes and validates bodies of POST
// /api/v1/route, as the HTTP server does.
func TestUnmarshal_ContractRequest(t *testing.T) {
	with := func(member string) string { return `{"content":{"prompt":"x"},` + member + `}` }
	many := func(turns int) string {
		return with(`"history":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, turns), ",") + `]`)
	}
	documents := []document{
		{"least", `{"content":{"prompt":"x"}}`, nil},
		{"in Portuguese", `{"content":{"prompt":"Revise este código"}}`, nil},
		{"in Chinese, escaped", `{"content":{"prompt":"\u5ba1\u67e5"}}`, nil},
		{"white space around", " \r\n{\"content\":{\"prompt\":\"x\"}}\n", nil},
		{"everything", `{"content":{"prompt":"x","inputs":{"code":"y","rows":[1,null,{"a":true}]}},
			"history":[{"role":"user","content":"a"},{"role":"assistant","content":""}],"metadata":{"locale":"pt-BR"},
			"session_id":"s","agent_id":"quality_agent","clarification":{"request_id":"r","option_id":"1"},
			"options":{"dry_run":true,"mode":"sync","timeout_ms":600000,"fallback":"B"}}`, nil},
		{"maximum history", many(64), nil},
		{"no agents", with(`"agent_id":null`), nil},
		{"any spelling inside inputs", `{"content":{"prompt":"x","inputs":{"Code":1,"code":2}}}`, nil},

		{"nothing", ``, whole},
		{"no object", `[]`, whole},
		{"null", `null`, whole},
		{"empty", `{}`, []string{"/content/prompt"}},
		{"no prompt", `{"content":{}}`, []string{"/content/prompt"}},
		{"empty prompt", `{"content":{"prompt":""}}`, []string{"/content/prompt"}},
		{"null for the prompt", `{"content":{"prompt":null}}`, []string{"/content/prompt"}},
		{"number as the prompt", `{"content":{"prompt":1}}`, []string{"/content/prompt"}},
		{"prompt at the top level", `{"prompt":"x"}`, []string{"/prompt"}},
		{"duplicate prompt", `{"content":{"prompt":"x","prompt":"y"}}`, []string{"/content/prompt"}},
		{"prompt in another case", `{"content":{"Prompt":"x"}}`, []string{"/content/Prompt"}},
		{"prompt as an input", `{"content":{"prompt":"x","inputs":{"prompt":"y"}}}`, []string{"/content/inputs/prompt"}},
		{"duplicate input", `{"content":{"prompt":"x","inputs":{"a":1,"a":2}}}`, []string{"/content/inputs/a"}},
		{"unknown member", with(`"tenant":"acme"`), []string{"/tenant"}},
		{"id from the client", with(`"request_id":"mine"`), []string{"/request_id"}},
		{"second document", `{"content":{"prompt":"x"}}{}`, whole},
		{"trailing comma", `{"content":{"prompt":"x"},}`, whole},
		{"invalid UTF-8", "{\"content\":{\"prompt\":\"\xff\"}}", []string{"/content/prompt"}},
		{"too much history", many(65), []string{"/history"}},
		{"turn with an unknown role", with(`"history":[{"role":"system","content":"x"}]`), []string{"/history/0/role"}},
		{"string as a turn", with(`"history":["x"]`), []string{"/history/0"}},
		{"no agent id", with(`"agent_id":"Quality Agent"`), []string{"/agent_id"}},
		{"half an answer", with(`"clarification":{"request_id":"r"}`), []string{"/clarification/option_id"}},
		{"string as dry_run", with(`"options":{"dry_run":"yes"}`), []string{"/options/dry_run"}},
		{"unknown mode", with(`"options":{"mode":"later"}`), []string{"/options/mode"}},
		{"negative timeout", with(`"options":{"timeout_ms":-1}`), []string{"/options/timeout_ms"}},
		{"half a millisecond", with(`"options":{"timeout_ms":0.5}`), []string{"/options/timeout_ms"}},
		{"unknown policy", with(`"options":{"fallback":"D"}`), []string{"/options/fallback"}},
		{"wrong in three places", `{"content":{"prompt":""},"agent_id":"?","options":{"fallback":"a"}}`, []string{"/content/prompt", "/options/fallback", "/agent_id"}},
	}
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			var r contract.Request
			wrong, decoded := readInvalid(t, d.text, &r)
			if e := r.Validate(); decoded && e != nil {
				for _, detail := range e.Details {
					if !slices.Contains(wrong, detail.Pointer) {
						wrong = append(wrong, detail.Pointer)
					}
				}
			}
			comparePointers(t, d, wrong)
		})
	}
}

// TestUnmarshal_ContractResult decodes results of agents.
func TestUnmarshal_ContractResult(t *testing.T) {
	with := func(member string) string { return `{"status":"success",` + member + `}` }
	documents := []document{
		{"least", `{"status":"success"}`, nil},
		{"a failure", `{"status":"failure","logs":["no such file"]}`, nil},
		{"partial result", `{"status":"partial","data":{"answer":"half of it"}}`, nil},
		{"everything", `{"task_id":"t","status":"success","data":{"answer":"a","rows":[1,{"b":null}]},"logs":["l"],
			"metrics":{"tokens":812,"ms":0.25},"explanations":["e"]}`, nil},
		{"empty lists", with(`"data":{},"logs":[],"metrics":{},"explanations":[]`), nil},

		{"nothing", ``, whole},
		{"prose", `done`, whole},
		{"a list", `[{"status":"success"}]`, whole},
		{"empty", `{}`, []string{"/status"}},
		{"null for the status", `{"status":null}`, []string{"/status"}},
		{"unknown status", `{"status":"done"}`, []string{"/status"}},
		{"status in another case", `{"status":"Success"}`, []string{"/status"}},
		{"status of a task", `{"status":"running"}`, []string{"/status"}},
		{"duplicate status", `{"status":"success","status":"failure"}`, []string{"/status"}},
		{"member in another case", `{"STATUS":"success"}`, []string{"/STATUS"}},
		{"unknown member", with(`"agent":"x"`), []string{"/agent"}},
		{"data in text", with(`"data":"a"`), []string{"/data"}},
		{"logs in text", with(`"logs":"l"`), []string{"/logs"}},
		{"null among the logs", with(`"logs":[null]`), []string{"/logs/0"}},
		{"string as a metric", with(`"metrics":{"tokens":"812"}`), []string{"/metrics/tokens"}},
		{"metric is not a number", with(`"metrics":{"tokens":NaN}`), []string{"/metrics/tokens"}},
		{"explanation is not a string", with(`"explanations":[1]`), []string{"/explanations/0"}},
		{"second document", `{"status":"success"}{"status":"failure"}`, whole},
	}
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			wrong, _ := readInvalid(t, d.text, new(contract.Result))
			comparePointers(t, d, wrong)
		})
	}
}

// TestUnmarshal_ContractClassification decodes classifications as in routing test cases and stored
// decisions. Package classifier tests replies of models.
func TestUnmarshal_ContractClassification(t *testing.T) {
	const lead = `{"intent":"code_review","domains":["python"],"subtasks":[],"confidence":0.9,"source":"llm","latency_ms":1`
	documents := []document{
		{"least", lead + `}`, nil},
		{"everything", `{"intent":"code_review","domains":["python"],"subtasks":[{"title":"t","reason":"r","intent":"code_review","domains":["python"]}],
			"confidence":1,"source":"lexical","reason":"llm_timeout","latency_ms":0.5,"alternatives":[{"intent":"cost_analysis","confidence":0.4}]}`, nil},
		{"with the model's use", lead + `,"provider":"openai","model":"m","prompt_version":"1","tokens":{"input":1,"output":2},"calls":[
			{"purpose":"classify","outcome":"ok","tokens":{"input":1,"output":2},"latency_ms":3}]}`, nil},

		{"unknown member", lead + `,"agent":"x"}`, []string{"/agent"}},
		{"member in another case", lead + `,"Reason":"x"}`, []string{"/Reason"}},
		{"duplicate intent", lead + `,"intent":"x"}`, []string{"/intent"}},
		{"null for the intent", `{"intent":null}`, []string{"/intent"}},
		{"list of intents", `{"intent":["code_review"]}`, []string{"/intent"}},
		{"domains in text", `{"domains":"python"}`, []string{"/domains"}},
		{"null among the domains", `{"domains":["python",null]}`, []string{"/domains/1"}},
		{"confidence in text", `{"confidence":"0.9"}`, []string{"/confidence"}},
		{"string as a subtask", `{"subtasks":["review"]}`, []string{"/subtasks/0"}},
		{"agent of a subtask", `{"subtasks":[{"title":"t","agent":"x"}]}`, []string{"/subtasks/0/agent"}},
		{"tokens in text", lead + `,"tokens":{"input":"1"}}`, []string{"/tokens/input"}},
	}
	for _, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			wrong, _ := readInvalid(t, d.text, new(contract.Classification))
			comparePointers(t, d, wrong)
		})
	}
}

// readInvalid decodes the text into v and returns the invalid pointers: the one that ended the decoding,
// or else every one that violates the tags of v.
func readInvalid(t *testing.T, text string, v any) (wrong []string, decoded bool) {
	t.Helper()
	if err := strictjson.Unmarshal([]byte(text), v); err != nil {
		e, ok := errors.AsType[*strictjson.Error](err)
		if !ok || e.Detail == "" {
			t.Fatalf("got error %v (%T), want a *strictjson.Error with a text", err, err)
		}
		return []string{e.Pointer}, false
	}
	for _, detail := range strictjson.Validate(v) {
		wrong = append(wrong, detail.Pointer)
	}
	return wrong, true
}

func comparePointers(t *testing.T, d document, got []string) {
	t.Helper()
	if diff := cmp.Diff(d.want, got); diff != "" {
		t.Errorf("%s: invalid pointers (-want +got):\n%s", d.text, diff)
	}
}
