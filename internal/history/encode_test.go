package history

import (
	"encoding/json"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func sampleResponse(text string) *contract.Response {
	return &contract.Response{
		RequestID: "r", Status: contract.StatusCompleted, Tasks: []contract.TaskReport{{AgentID: "billing"}},
		Omitted: []contract.Omitted{}, Decision: &contract.Decision{DecisionID: "d"},
		Data: contract.ResponseData{Results: []contract.AgentResult{{
			AgentID: "billing", Data: map[string]json.RawMessage{"text": json.RawMessage(`"` + text + `"`)},
		}}},
	}
}

func TestEncodeResponse_EncodesOnceForCallerAndLog(t *testing.T) {
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		text   string
		shared bool
	}{
		"no data to mask": {"the bill is paid", true},
		"email address":   {"write to ana.souza@example.com", false},
	} {
		t.Run(name, func(t *testing.T) {
			masking := redactor.StartMasking()
			resp := sampleResponse(tc.text)
			got := EncodeResponse(Subject{Caller: &contract.Caller{Subject: "ana"}, Masking: masking, Prompt: "pay", SessionKey: "s"}, resp)
			want, err := strictjson.Marshal(resp)
			if err != nil {
				t.Fatal(err)
			}
			if shared := got.JSON(resp); tc.shared && string(shared) != string(want) || !tc.shared && shared != nil {
				t.Errorf("got JSON %q, want the response %v", shared, tc.shared)
			}
			if other := got.JSON(new(*resp)); other != nil {
				t.Errorf("got JSON %q of another response, want none", other)
			}
			var c Content
			if err := strictjson.Unmarshal(got.record.Content, &c); err != nil {
				t.Fatalf("%v: %s", err, got.record.Content)
			}
			if c.Prompt != "pay" || c.Session != "s" || c.Response == nil || c.Response.RequestID != "r" {
				t.Errorf("got content %s, want prompt, session and response", got.record.Content)
			}
			if (got.record.Answer == nil) != tc.shared {
				t.Errorf("got a separate answer %q, want one %v", got.record.Answer, !tc.shared)
			}
		})
	}
}
