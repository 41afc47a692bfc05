package explain

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestPrintResponse prints each kind of decision and compares it with testdata/NAME.txt;
// -update rewrites these files.
func TestPrintResponse(t *testing.T) {
	tests := []struct {
		name string
		resp *contract.Response
		opts Options
	}{
		{"dry_run", dryRun(), Options{Prompt: "Please do a code review of this python module", Options: terminal.Options{Width: 100}}},
		{"tied", tied(), Options{Prompt: "Where is my order?", Options: terminal.Options{Width: 100}}},
		{"two_agents", twoAgents(), Options{Prompt: "Revise este notebook e o custo dele", Options: terminal.Options{Width: 100}}},
		{"unsupported", unsupported(), Options{Prompt: "Retrieval QA about azure", Teach: `caprouter teach "…"`, Options: terminal.Options{Width: 100}}},
		{"proposed", proposed(), Options{Prompt: "Book me a flight", Teach: `caprouter teach "…"`, Options: terminal.Options{Width: 100}}},
		{"nothing_near", nothingNear(), Options{Prompt: "Write a poem", Options: terminal.Options{Width: 100}}},
		{"failed", failed(), Options{Prompt: "code review of python", Options: terminal.Options{Width: 100}}},
		{"narrow", failed(), Options{Prompt: "请对这个 Python 模块做代码审查，并告诉我哪里写得不好", Options: terminal.Options{Width: terminal.MinWidth}}},
		{"colour", failed(), Options{Prompt: "code review of python", Options: terminal.Options{Width: 100, Color: true}}},
		{"long", longAnswer(), Options{Prompt: strings.Repeat("one line of a long prompt ", 6) + "\n2\n3\n4\n5", Options: terminal.Options{Width: 60}}},
		{"wide", wideText(), Options{Prompt: "请审查这段 Python 代码", Options: terminal.Options{Width: 60}}},
		{"hostile", hostile(), Options{Prompt: "do\x1b[2J it\r\nnow\x07", Options: terminal.Options{Width: 100}}},
		{"data_only", dataOnly(), Options{Options: terminal.Options{Width: 100}}},
		{"empty", &contract.Response{Status: contract.StatusCancelled}, Options{Options: terminal.Options{Width: 100}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkPage(t, tt.name, tt.resp, tt.opts) })
	}
}

// checkPage prints a response and compares it with testdata/NAME.txt.
func checkPage(t *testing.T, name string, resp *contract.Response, opts Options) {
	t.Helper()
	var out bytes.Buffer
	PrintResponse(&out, resp, opts)
	checkGolden(t, filepath.Join("testdata", name+".txt"), out.String())
	for i, line := range strings.Split(out.String(), "\n") {
		if !opts.Color && terminal.TextWidth(line) > opts.Width {
			t.Errorf("line %d: got %d columns, want at most %d: %q", i+1, terminal.TextWidth(line), opts.Width, line)
		}
		if line != strings.TrimRight(line, " ") {
			t.Errorf("line %d: got trailing spaces: %q", i+1, line)
		}
	}
}

func checkGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

const (
	requestID       = "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90"
	registryVersion = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// candidate returns an eligible agent that matches intent and domains.
func candidate(id string, role contract.Role, domains ...string) contract.Candidate {
	parts := contract.ScoreParts{Intent: 0.5, Domains: min(0.3*float64(len(domains)), 0.6)}
	return contract.Candidate{
		AgentID: id, Role: role, Eligible: true, Parts: parts, Score: parts.Intent + parts.Domains,
		MatchedDomains: domains, Gates: []contract.Gate{},
	}
}

// withSubtask sets the index of the subtask that the candidate was matched for.
func withSubtask(i int, c contract.Candidate) contract.Candidate {
	c.Subtask = &i
	return c
}

func ineligible(c contract.Candidate, gates ...contract.Gate) contract.Candidate {
	c.Role, c.Eligible, c.Gates = contract.RoleCandidate, false, gates
	return c
}

func decided(clf contract.Classification, candidates ...contract.Candidate) *contract.Decision {
	d := &contract.Decision{
		Classification: clf, Candidates: candidates, CandidatesTotal: len(candidates), RegistryVersion: registryVersion,
		TimingsMS: map[string]float64{"classify": 0.081, "match": 0.012, "total": 0.113},
	}
	for _, c := range candidates {
		switch c.Role {
		case contract.RoleChosen:
			d.Chosen = append(d.Chosen, c.AgentID)
		case contract.RoleStandby:
			d.Standby = append(d.Standby, c.AgentID)
		case contract.RoleCandidate:
		}
	}
	return d
}

// tied is classified as one of two intents of the same agent, in a subtask and as a whole.
func tied() *contract.Response {
	next := []contract.IntentScore{{Intent: "cancel_order", Confidence: 0.3}, {Intent: "chat", Confidence: 0.1}}
	d := decided(contract.Classification{
		Intent: "track_order", Domains: []string{"orders"}, Confidence: 0.375, Source: contract.SourceLexical, LatencyMS: 0.081,
		Alternatives: next, Tied: true, TiedConfidence: 0.675,
		Subtasks: []contract.Subtask{
			{Title: "Where is my order?", Intent: "track_order", Domains: []string{"orders"}, Confidence: 0.375, Alternatives: next, Tied: true},
			{Title: "Review my code", Intent: "code_review", Domains: []string{"python"}, Confidence: 1},
		},
	}, withSubtask(0, candidate("order_agent", contract.RoleChosen, "orders")), withSubtask(1, candidate("quality_agent", contract.RoleChosen, "python")))
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusAccepted, Decision: d,
		Data: contract.ResponseData{Mode: contract.DataDispatch, DryRun: true},
	}
}

func dryRun() *contract.Response {
	d := decided(contract.Classification{
		Intent: "code_review", Domains: []string{"python"}, Confidence: 1, Source: contract.SourceLexical, LatencyMS: 0.081,
		Alternatives:  []contract.IntentScore{{Intent: "databricks_review", Confidence: 0.5}, {Intent: "chat", Confidence: 0.125}},
		DomainOrigins: []contract.DomainOrigin{{Domain: "python", Origin: contract.DomainNamed}},
		Evidence: []contract.Evidence{
			{Kind: contract.EvidenceExample, Text: "review this python module", Intent: "code_review", Strength: 1},
			{Kind: contract.EvidenceTypo, Text: "review", Intent: "code_review", Strength: 0.8333, RequestText: "revew\x1b"},
			{Kind: contract.EvidenceKeyword, Text: "code\x1b smell", Intent: "code_review", Strength: 0.5, Missing: []string{"smell"}},
		},
	}, candidate("quality_agent", contract.RoleChosen, "python"), candidate("z_agent", contract.RoleStandby, "python"),
		candidate("zz_agent", contract.RoleCandidate, contract.AnyDomain))
	d.CandidatesTotal = 25
	d.TieBreak = &contract.TieBreak{
		Rule: "matched_domains", Winner: "quality_agent", Over: "z_agent",
		Reason: "both score 0.80: quality_agent declares 6 intents and domains, z_agent declares 12 of them",
	}
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusAccepted, Decision: d,
		Data: contract.ResponseData{Mode: contract.DataDispatch, DryRun: true},
	}
}

func twoAgents() *contract.Response {
	d := decided(contract.Classification{
		Intent: "databricks_review", Domains: []string{"databricks"}, Confidence: 0.934, Source: contract.SourceLLM, LatencyMS: 412.4,
		Reason: "llm_max_tokens",
		Subtasks: []contract.Subtask{
			{Title: "Revise este notebook"},
			{Title: "o custo dele", Intent: "cost_analysis", Domains: []string{"azure", "databricks"}},
			{Title: "e a previsão do tempo", Intent: "weather"},
		},
	}, withSubtask(0, candidate("quality_agent", contract.RoleChosen, "databricks")),
		withSubtask(0, ineligible(candidate("other_agent", "", "databricks"), contract.Gate{Gate: "state", Reason: "breaker open for another 3 s"})),
		withSubtask(1, candidate("billing_agent", contract.RoleChosen, "azure", "databricks")))
	d.TimingsMS = map[string]float64{"classify": 412.4, "match": 0.012, "dispatch": 1405.7, "aggregate": 2.25, "total": 1820}
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusPartial, Decision: d,
		Tasks: []contract.TaskReport{
			{AgentID: "quality_agent", SubtaskTitle: "Revise este notebook", Status: contract.TaskSuccess, Attempts: 1, LatencyMS: 12.34},
			{AgentID: "billing_agent", SubtaskTitle: "o custo dele", Status: contract.TaskPartial, Attempts: 2, LatencyMS: 1405.7},
		},
		Omitted: []contract.Omitted{
			{Subtask: 2, Title: "e a previsão do tempo", Intent: "weather", Domains: []string{"databricks"}, Reason: "no_match"},
		},
		Data: contract.ResponseData{
			Mode:   contract.DataDispatch,
			Answer: "## Revise este notebook (quality_agent)\n\nTwo findings:\n\n- line 3: an unused import\n\n## o custo dele (billing_agent)\n\n1,20 €\n",
		},
	}
}

func unsupported() *contract.Response {
	near := candidate("rag_agent", contract.RoleCandidate)
	short := contract.Gate{Gate: "threshold", Reason: "score 0.50 is below the threshold 0.65"}
	large := candidate("large_agent", contract.RoleCandidate, "azure")
	large.Parts.Constraints, large.Score = -0.2, 0.6
	d := decided(contract.Classification{
		Intent: "retrieval_qa", Domains: []string{"azure"}, Confidence: 0.4, Source: contract.SourceLexical, LatencyMS: 0.05,
	}, ineligible(large, contract.Gate{Gate: "threshold", Reason: "score 0.60 is below the threshold 0.65"},
		contract.Gate{Gate: "scopes", Reason: "needs scope route:large"}), ineligible(near, short))
	used := "B"
	d.FallbackUsed = &used
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusUnsupported, Decision: d,
		Data: contract.ResponseData{Mode: contract.DataUnsupported, Unsupported: &contract.Unsupported{
			Reason: "no_match",
			Detail: "the request is too long: shorten it to about 32000 characters",
			Nearest: []contract.NearestMiss{
				{AgentID: "large_agent", Score: 0.6, MissingScore: 0.05},
				{AgentID: "rag_agent", Score: 0.5, MissingScore: 0.15},
				{AgentID: "gated_agent", Score: 0.8, Gates: []contract.Gate{{Gate: "tenant"}, {Gate: "scopes"}}},
				{AgentID: "fit_agent", Score: 0.8},
			},
			AcceptedIntents: []string{"code_review", "cost_analysis", "databricks_review", "doc_answering", "retrieval_qa", "serverless_review"},
			AcceptedDomains: []string{"azure", "docs"},
			Examples:        []string{"what do the docs say about limits?", "o que dizem os documentos?"},
			NearestReading:  &contract.NearestReading{AgentID: "rag_agent", Intent: "doc_answering", Confidence: 0.4},
		}},
	}
}

func nothingNear() *contract.Response {
	used := "B"
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusUnsupported,
		Decision: &contract.Decision{
			Classification: contract.Classification{Intent: contract.Unknown, Confidence: 0.51, RequiredConfidence: 0.58, Source: contract.SourceLexical},
			FallbackUsed:   &used,
		},
		Data: contract.ResponseData{Mode: contract.DataUnsupported, DryRun: true, Unsupported: &contract.Unsupported{
			Reason: "no_match", Detail: "no agent is registered here yet",
		}},
	}
}

func failed() *contract.Response {
	negative := ineligible(candidate("negative_agent", ""), contract.Gate{Gate: "confidence", Reason: "confidence 0.40 is below the minimum 0.50"})
	negative.Parts, negative.Score = contract.ScoreParts{Constraints: -0.2}, -0.2
	nothing := ineligible(candidate("nothing_agent", ""), contract.Gate{Gate: "state", Reason: "disabled"})
	nothing.Parts, nothing.Score = contract.ScoreParts{}, 0
	d := decided(contract.Classification{
		Intent: "code_review", Domains: []string{"python", "databricks"}, Confidence: 0.77, Source: contract.SourceLexical, LatencyMS: 0.05,
	}, candidate("quality_agent", contract.RoleChosen, "python", "databricks"),
		candidate("b_agent", contract.RoleStandby, "python"), negative, nothing)
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusFailed, Decision: d,
		Tasks: []contract.TaskReport{{
			AgentID: "b_agent", SubtaskTitle: "code review of python", Status: contract.TaskFailed, Attempts: 3, LatencyMS: 3000,
			Error: &contract.TaskError{Code: contract.TaskDeadlineExceeded, Detail: "b_agent did not answer in 3s"},
			FailedOver: []contract.FailedAttempt{
				{AgentID: "quality_agent", Status: contract.TaskFailed, Attempts: 2, LatencyMS: 4.25, Error: &contract.TaskError{
					Code: contract.TaskAgentUnavailable, Detail: "quality_agent at 127.0.0.1:9101: connection refused",
				}},
				{AgentID: "a_agent", Status: contract.TaskFailure, Attempts: 1, LatencyMS: 99.6, Explanations: []string{"row 3 has no cost"}},
			},
		}},
	}
}

func longAnswer() *contract.Response {
	r := dryRun()
	r.Status, r.Data.DryRun = contract.StatusCompleted, false
	r.Tasks = []contract.TaskReport{{AgentID: "quality_agent", Status: contract.TaskSuccess, Attempts: 1, LatencyMS: 1}}
	r.Data.Answer = "\n" + strings.Repeat("A line of an answer that goes on for longer than the page is wide.\n", 40)
	return r
}

func wideText() *contract.Response {
	r := twoAgents()
	r.Omitted = nil
	r.Decision.Classification.Subtasks = []contract.Subtask{{Title: "请审查这段代码，看看有没有问题，并说明应该怎样改进才好"}, {Title: "分析费用 🚀"}}
	r.Tasks[0].SubtaskTitle, r.Tasks[1].SubtaskTitle = "请审查这段代码，看看有没有问题，并说明应该怎样改进才好", "分析费用 🚀"
	r.Data.Answer = "发现两个问题：第三行有一个没有用到的导入，第十七行的 except 没有写明异常的类型，这样会把键盘中断也一起吞掉。"
	return r
}

// hostile is a hostile response of a router or an agent.
func hostile() *contract.Response {
	r := failed()
	r.Decision.Candidates[0].AgentID = "quality\x1b]0;title\x07"
	r.Decision.Candidates[1].Role = "boss\n"
	r.Decision.RegistryVersion = "v\x1b[1m"
	r.Tasks[0].Error.Detail = "line one\nline two\x1b[31m"
	r.Status = "weird\x1b[0m"
	r.Data.Answer = "safe\x1b[8mhidden\u202etxet\tand\r\nthe rest\x00"
	return r
}

func dataOnly() *contract.Response {
	r := dryRun()
	r.Status, r.Data.DryRun = contract.StatusCompleted, false
	raw := json.RawMessage(`1`)
	r.Data.Results = []contract.AgentResult{
		{AgentID: "quality_agent", Status: contract.TaskSuccess, Data: map[string]json.RawMessage{"rows": raw, "findings": raw}},
		{AgentID: "z_agent", Status: contract.TaskSuccess},
	}
	return r
}

func TestFormatMillis(t *testing.T) {
	tests := []struct {
		ms   float64
		want string
	}{
		{0, "0 µs"},
		{0.004, "4 µs"},
		{0.9, "900 µs"},
		{1, "1.0 ms"},
		{9.94, "9.9 ms"},
		{12.3, "12 ms"},
		{999, "999 ms"},
		{1405, "1.41 s"},
		{61_000, "61.00 s"},
	}
	for _, tt := range tests {
		if got := strings.ReplaceAll(formatMillis(tt.ms), terminal.NoBreakSpace, " "); got != tt.want {
			t.Errorf("formatMillis(%v): got %q, want %q", tt.ms, got, tt.want)
		}
	}
}

func TestFormatOmitted(t *testing.T) {
	for _, reason := range []string{"no_match", "low_confidence", "gated", "topk_reached"} {
		if got := formatOmitted(reason); !strings.HasPrefix(got, reason+", ") {
			t.Errorf("%s: got %q, want it and a sentence", reason, got)
		}
	}
	if got := formatOmitted("new_reason"); got != "new_reason" {
		t.Errorf("got %q, want an unknown reason alone", got)
	}
}

func proposed() *contract.Response {
	d := decided(contract.Classification{Intent: contract.Unknown, Domains: []string{}, Source: contract.SourceLexical, LatencyMS: 0.02})
	policy := "C"
	d.FallbackUsed = &policy
	return &contract.Response{
		RequestID: requestID, Status: contract.StatusProposed, Decision: d,
		Data: contract.ResponseData{Mode: contract.DataAgentProposal, Proposal: &contract.Proposal{
			TicketID: "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e91", Joined: true, Count: 3, Similarity: 0.62, Threshold: 0.3,
			Detail:        "no intent fits. The request was added to a ticket of 3 similar requests (similarity 0.62, and 0.30 is needed)",
			SuggestedYAML: "version: 1\nclients:\n  book_flight_agent:\n    match: {}\n",
			Requirements:  []string{"serve the intent book_flight"}, Risks: []string{"few examples"},
			NearestReading: &contract.NearestReading{AgentID: "travel_agent", Intent: "book_trip", Confidence: 0.4},
		}},
	}
}

// Feedback is a field like the others, one line for each caller.
func TestPrintReading_Feedback(t *testing.T) {
	resp := contract.Response{Status: contract.StatusUnsupported, Feedback: []contract.Feedback{
		{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"quality_agent"}}, {Verdict: contract.VerdictCorrect},
	}}
	var out strings.Builder
	PrintReading(&out, &resp, Options{Prompt: "sing", Options: terminal.Options{Width: 80}})
	if want := "\n  feedback    misroute, expected quality_agent\n              correct\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant it to contain%s", out.String(), want)
	}
}
