package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestServer_DispatchesFollowUpOfSession(t *testing.T) {
	agent, tasks := startRecorder(t, "port_agent", agentkit.Answer("in Rotterdam"))
	s := startServer(t, fmt.Sprintf(`clients:
  port_agent: { match: { intent: [track_container], domains: [shipping] }, examples: { track_container: [where is my container, track my container] }, endpoint: { protocol: http, url: %q } }
  hotel_agent: { match: { intent: [clean_room], domains: [housekeeping] }, examples: { clean_room: [clean room 101] } }
`, agent.url))
	agent.trust(s)
	ask := func(prompt, members string) (int, *contract.Response) {
		t.Helper()
		status, body := s.post(t.Context(), fmt.Sprintf(`{"content":{"prompt":%q}%s}`, prompt, members))
		resp := new(contract.Response)
		if status == http.StatusOK {
			if err := json.Unmarshal(body, resp); err != nil {
				t.Fatal(err)
			}
		}
		return status, resp
	}
	refused := func(why, prompt, members string) {
		t.Helper()
		status, resp := ask(prompt, members)
		if isRefused := status == http.StatusUnprocessableEntity || resp.Decision != nil && resp.Decision.Classification.Intent == contract.Unknown; !isRefused {
			t.Errorf("%s: got status %d, decision %+v, want it not understood", why, status, resp.Decision)
		}
	}
	const (
		first = "Where is my container MSKU1234567?"
		next  = "and TCLU7781239?"
		in    = `,"session_id":"s1"`
	)
	refused("first request of the session", next, in)
	if status, _ := ask(first, in); status != http.StatusOK {
		t.Fatalf("got status %d", status)
	}
	asked := testkit.Receive(t, tasks)
	refused("no session", next, "")
	refused("another session", next, `,"session_id":"s2","options":{"dry_run":true}`)
	refused("reclassify", next, in+`,"options":{"reclassify":true,"dry_run":true}`)
	refused("a history of its own", next, in+`,"options":{"dry_run":true},"history":[{"role":"user","content":"`+first+`"}]`)

	_, resp := ask(next, in+`,"options":{"explain":true}`)
	c := resp.Decision.Classification
	if c.Intent != "track_container" || c.Source != contract.SourceLexical || c.Reason != "follow_up" || c.Confidence >= asked.Confidence {
		t.Errorf("got classification %+v, want track_container with less confidence than %v", c, asked.Confidence)
	}
	want := []contract.Evidence{{Kind: contract.EvidenceFollowUp, Text: next, Intent: "track_container", Strength: asked.Confidence, Missing: []string{}}}
	if diff := cmp.Diff(want, c.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	task := testkit.Receive(t, tasks)
	if string(task.Inputs["prompt"]) != strconv.Quote(next) || task.Intent != "track_container" || len(task.History) == 0 {
		t.Errorf("got task %+v, want the follow-up with its history", task)
	}

	if status, _ := ask("and MSKU7654321?", in+`,"options":{"mode":"async"}`); status != http.StatusAccepted {
		t.Fatalf("got status %d, want the asynchronous follow-up accepted", status)
	}
	if task = testkit.Receive(t, tasks); task.Intent != "track_container" {
		t.Errorf("got task %+v, want track_container", task)
	}

	ask(first, `,"session_id":"s3"`)
	testkit.Receive(t, tasks)
	refused("another subject", "and the weather?", `,"session_id":"s3"`)
	refused("the previous request was not dispatched", next, `,"session_id":"s3"`)
}
