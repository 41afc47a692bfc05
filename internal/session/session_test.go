package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/session"
)

func everyAgent(string) bool { return true }

func noMask(text string) string { return text }

func newClassification(intent string) *contract.Classification {
	return &contract.Classification{
		Intent: intent, Domains: []string{"azure"}, Subtasks: []contract.Subtask{{Title: "old title", Reason: "old reason"}},
		Confidence: 0.9, Source: contract.SourceLLM, LatencyMS: 3, Alternatives: []contract.IntentScore{{Intent: "other"}},
	}
}

func TestSession_PinsClassification(t *testing.T) {
	waiting := session.Session{}.After(&session.Ended{
		Prompt: "costs of azure", Response: &contract.Response{}, MaskText: noMask, Classification: newClassification("cost"),
		Tasks: []session.Task{{AgentID: "asker", Intent: "cost", Domains: []string{"azure"}, Result: &contract.Result{
			Data: map[string]json.RawMessage{"needs_input": json.RawMessage("true")},
		}}},
	})
	served := session.Session{}.After(&session.Ended{
		Prompt: "costs of azure", Response: &contract.Response{}, MaskText: noMask, Classification: newClassification("cost"),
		Tasks: []session.Task{{AgentID: "asker", Result: &contract.Result{}}},
	})
	for _, tt := range []struct {
		name      string
		session   session.Session
		next      session.Next
		reason    string
		wantAgent string
	}{
		{"empty session", session.Session{}, session.Next{Trigger: session.NewSession}, "", ""},
		{"agent asked for input", waiting, session.Next{Trigger: session.EveryRequest}, session.ReasonNeedsInput, "asker"},
		{"caller names this agent", waiting, session.Next{OnlyAgent: "asker"}, session.ReasonNeedsInput, "asker"},
		{"caller names another agent", waiting, session.Next{Trigger: session.NewSession, OnlyAgent: "other"}, "", ""},
		{"agent removed", waiting, session.Next{MayUse: func(string) bool { return false }}, "", ""},
		{"every request", served, session.Next{Trigger: session.EveryRequest, Prompt: "costs of azure"}, "", ""},
		{"user turn, same prompt", served, session.Next{Trigger: session.UserTurn, Prompt: "costs of azure"}, session.ReasonSession, ""},
		{"user turn, other prompt", served, session.Next{Trigger: session.UserTurn, Prompt: "costs"}, "", ""},
		{"new session", served, session.Next{Trigger: session.NewSession, Prompt: "costs"}, session.ReasonSession, ""},
		{"caller names an agent", served, session.Next{Trigger: session.NewSession, OnlyAgent: "asker"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.next.MayUse == nil {
				tt.next.MayUse = everyAgent
			}
			pinned, agent := tt.session.Pin(tt.next)
			reason := ""
			if pinned != nil {
				reason = pinned.Reason
				got := pinned.Current()
				if got.Source != contract.SourcePinned || got.Reason != reason || got.Intent != "cost" || got.LatencyMS != 0 || got.Alternatives != nil {
					t.Errorf("got classification %+v, want the pinned one", got)
				}
			}
			if reason != tt.reason || agent != tt.wantAgent {
				t.Errorf("got reason %q, agent %q, want %q, %q", reason, agent, tt.reason, tt.wantAgent)
			}
		})
	}
	pinned, _ := served.Pin(session.Next{Trigger: session.NewSession, Prompt: "new title", MayUse: everyAgent})
	if got := pinned.Classification.Subtasks[0]; got.Title != "new title" || got.Reason != "" {
		t.Errorf("got subtask %+v, want the title of the new prompt and no reason", got)
	}
	if got := served.Classification.Subtasks[0].Title; got != "old title" {
		t.Errorf("Pin changed the stored title to %q", got)
	}
}

func TestSession_KeepsWaitingAgentWithoutResult(t *testing.T) {
	s := session.Session{WaitingAgent: "asker", WaitingFor: newClassification("cost")}
	pinned, _ := s.Pin(session.Next{MayUse: everyAgent})
	ended := &session.Ended{Response: &contract.Response{}, MaskText: noMask, Pinned: pinned, Classification: newClassification("cost")}
	if got := s.After(ended); got.WaitingAgent != "asker" {
		t.Errorf("got waiting agent %q after a request without a result, want asker", got.WaitingAgent)
	}
	ended.Tasks = []session.Task{{AgentID: "asker", Result: &contract.Result{}}}
	if got := s.After(ended); got.WaitingAgent != "" {
		t.Errorf("got waiting agent %q after its result, want none", got.WaitingAgent)
	}
}

func TestSession_Previous(t *testing.T) {
	var s session.Session
	end := func(id string, clf *contract.Classification) {
		s = s.After(&session.Ended{RequestID: id, Response: &contract.Response{}, MaskText: noMask, Classification: clf})
	}
	if got := s.Previous(); got != nil {
		t.Errorf("got %+v without a request, want nil", got)
	}
	end("1", newClassification("cost"))
	if got := s.Previous(); got == nil || got.Intent != "cost" {
		t.Errorf("got %+v, want cost", got)
	}
	erased := s.Without("1")
	if got := erased.Previous(); got != nil {
		t.Errorf("got %+v after the request was erased, want nil", got)
	}
	end("2", nil)
	if got := s.Previous(); got != nil {
		t.Errorf("got %+v after a request that was not dispatched, want nil", got)
	}
}

func TestSession_ShortensAndMasksTurns(t *testing.T) {
	var s session.Session
	for range session.MaxTurns {
		s = s.After(&session.Ended{
			RequestID: "r", Prompt: strings.Repeat("é", 2000),
			Response: &contract.Response{Data: contract.ResponseData{Answer: "secret " + strings.Repeat("x", 10_000)}},
			MaskText: func(text string) string { return strings.ReplaceAll(text, "secret", "[MASKED]") },
		})
	}
	turns := s.History()
	if len(turns) != session.MaxTurns {
		t.Fatalf("got %d turns, want %d", len(turns), session.MaxTurns)
	}
	user, assistant := turns[0], turns[1]
	if user.Role != "user" || user.Content != strings.Repeat("é", 1000)+"…" {
		t.Errorf("got %s turn of %d bytes, want the user's first 2,000 bytes", user.Role, len(user.Content))
	}
	if assistant.Role != "assistant" || len(assistant.Content) != 500+len("…") || !strings.HasPrefix(assistant.Content, "[MASKED]") {
		t.Errorf("got %s turn %.20q of %d bytes, want 500 masked bytes of the assistant", assistant.Role, assistant.Content, len(assistant.Content))
	}
	erased := s.Without("r")
	if got := erased.History(); len(got) != 0 {
		t.Errorf("got %d turns after erasing the request, want none", len(got))
	}
}

// The stored members must stay readable for other versions.
func TestSession_JSON(t *testing.T) {
	s := session.Session{
		Turns:      []session.Turn{{Turn: contract.Turn{Role: "user", Content: "hi"}, RequestID: "r"}},
		PromptHash: []byte{1}, WaitingAgent: "asker", AskedCaller: true,
	}
	got, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"turns":[{"role":"user","content":"hi","request_id":"r"}],"prompt":"AQ==","waits":"asker","asked":true}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
