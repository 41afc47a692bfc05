package explain

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestPrintAnswer(t *testing.T) {
	chosen := &contract.Decision{Chosen: []string{"a", "b"}}
	tests := []struct {
		name          string
		resp          contract.Response
		base          string
		out, complain string
	}{
		{
			name: "plain answer",
			resp: contract.Response{Status: contract.StatusCompleted, Data: contract.ResponseData{Answer: "\x1b[1mbold\tone"}},
			out:  "\x1b[1mbold\tone\n",
		},
		{
			name: "dry run",
			resp: contract.Response{Status: contract.StatusAccepted, Decision: chosen, Data: contract.ResponseData{DryRun: true}},
			out:  "accepted: a, b\n",
		},
		{
			name: "dry run without a decision",
			resp: contract.Response{Status: contract.StatusAccepted, Data: contract.ResponseData{DryRun: true}},
		},
		{
			name: "unsupported dry run",
			resp: contract.Response{Status: contract.StatusUnsupported, Decision: &contract.Decision{}, Data: contract.ResponseData{
				DryRun: true, Unsupported: &contract.Unsupported{Reason: "no_match", Detail: "say more"},
			}},
			complain: "caprouter: unsupported (no_match): say more\n",
		},
		{
			name: "unsupported with a reading",
			resp: contract.Response{Status: contract.StatusUnsupported, Data: contract.ResponseData{Mode: contract.DataUnsupported, Unsupported: &contract.Unsupported{
				Reason: "no_match", Detail: "say more", NearestReading: &contract.NearestReading{AgentID: "it_agent", Intent: "reset_password", Confidence: 0.4},
			}}},
			complain: "caprouter: unsupported (no_match): say more\ncaprouter: if it_agent already does this: caprouter teach x\n",
		},
		{
			name: "proposal with a reading",
			resp: contract.Response{Status: contract.StatusProposed, Data: contract.ResponseData{Mode: contract.DataAgentProposal, Proposal: &contract.Proposal{
				Detail: "no agent", NearestReading: &contract.NearestReading{AgentID: "it_agent", Intent: "reset_password", Confidence: 0.4},
			}}},
			complain: "caprouter: proposed: no agent\ncaprouter: if it_agent already does this: caprouter teach x\n",
		},
		{
			name: "failed tasks and omitted subtasks",
			resp: contract.Response{
				Status: contract.StatusFailed,
				Tasks: []contract.TaskReport{
					{AgentID: "a", Status: contract.TaskFailed, Error: &contract.TaskError{Code: contract.TaskBadResult, Detail: "no\nJSON"}},
					{AgentID: "b", Status: contract.TaskFailure},
					{AgentID: "c", Status: contract.TaskSuccess},
				},
				Omitted: []contract.Omitted{{Title: "the rest", Reason: "topk_reached"}},
			},
			complain: "caprouter: a: bad_result: no; JSON\ncaprouter: b: the agent returned a failure\n" +
				"caprouter: left out: the rest: topk_reached, the request has as many agents as routing.topk allows\n",
		},
		{
			name: "data",
			resp: contract.Response{Status: contract.StatusCompleted, Data: contract.ResponseData{Results: []contract.AgentResult{
				{AgentID: "a", Data: map[string]json.RawMessage{"n": json.RawMessage(`1`), "b": json.RawMessage(`"<"`)}}, {AgentID: "b"},
			}}},
			out:      "a: {\"b\":\"<\",\"n\":1}\n",
			complain: "caprouter: b: completed, without a text or data\n",
		},
		{
			name: "explanations without data",
			resp: contract.Response{Status: contract.StatusCompleted, Data: contract.ResponseData{Results: []contract.AgentResult{
				{AgentID: "a", Status: contract.TaskSuccess, Explanations: []string{"nothing\nto do", "the list is empty"}},
			}}},
			complain: "caprouter: a: completed, without a text or data: nothing; to do; the list is empty\n",
		},
		{
			name: "data of a failure",
			resp: contract.Response{
				Status: contract.StatusFailed,
				Tasks: []contract.TaskReport{
					{AgentID: "a", Status: contract.TaskFailure}, {AgentID: "b", Status: contract.TaskFailure},
				},
				Data: contract.ResponseData{Results: []contract.AgentResult{
					{
						AgentID: "a", Status: contract.TaskFailure, Explanations: []string{"no such place"}, Data: map[string]json.RawMessage{
							"error_code": json.RawMessage(`"PLACE_NOT_FOUND"`), "severity": json.RawMessage(`"WARNING"`), "suggestion": json.RawMessage(`"name a place"`),
						},
					},
					{AgentID: "b", Status: contract.TaskFailure, Data: map[string]json.RawMessage{"row": json.RawMessage(`3`)}},
				}},
			},
			complain: "caprouter: a: the agent returned a failure: PLACE_NOT_FOUND: no such place; name a place\n" +
				"caprouter: b: the agent returned a failure: {\"row\":3}\n",
		},
		{
			name: "question of a running router",
			resp: *clarification(), base: someBase,
			complain: "caprouter: clarification_required (ambiguous): The request can be read in several ways. Which one is meant?\n" +
				"caprouter: option 1: databricks review (databricks)\ncaprouter: option 2: cost analysis (databricks)\n" +
				"caprouter: send the same request with --choose " + requestID + "=OPTION\n",
		},
		{
			name: "question without a router",
			resp: contract.Response{Status: contract.StatusClarify, Data: contract.ResponseData{
				Mode: contract.DataClarification, Question: "Which?", Options: []contract.ClarificationOption{{ID: "1", Intent: "a", Domains: []string{"b"}}},
			}},
			complain: "caprouter: clarification_required: Which?\ncaprouter: option 1: a · b\n" +
				"caprouter: name the wanted option in the text, or send the request to a running router (--url), which stores the question for --choose\n",
		},
		{
			name: "answer of a model",
			resp: *serverFallback(),
			out:  serverFallback().Data.Answer + "\n",
		},
		{
			name:     "answer without a model",
			resp:     *degraded(),
			out:      degraded().Data.Answer + "\n",
			complain: "caprouter: no model has answered: llm_not_configured: no model is configured: set GEMINI_API_KEY, or llm in the configuration\n",
		},
		{
			name: "dry run that a model would answer",
			resp: contract.Response{Status: contract.StatusCompleted, Decision: &contract.Decision{}, Data: contract.ResponseData{
				Mode: contract.DataServerFallback, DryRun: true,
			}},
			out: "completed: no agent; the model would answer (fallback policy A)\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if err := PrintAnswer(&out, &errOut, &tt.resp, tt.base, "caprouter teach x"); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.out {
				t.Errorf("got %q, want %q", got, tt.out)
			}
			if got := errOut.String(); got != tt.complain {
				t.Errorf("messages: got %q, want %q", got, tt.complain)
			}
		})
	}
}
