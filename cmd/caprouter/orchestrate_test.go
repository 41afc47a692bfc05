package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpandGoal_LeavesSubcommands(t *testing.T) {
	for _, tt := range []struct{ args, want []string }{
		{[]string{"mcp list the files"}, []string{"orchestrate", "list the files"}},
		{[]string{"mcp list the files", "--json"}, []string{"orchestrate", "list the files", "--json"}},
		{[]string{"mcp list"}, []string{"mcp", "list"}},
		{[]string{"mcp", "list"}, []string{"mcp", "list"}},
		{[]string{"mcp:", "list", "files", "--plan", "a.json"}, []string{"orchestrate", "list files", "--plan", "a.json"}},
		{[]string{"mcp:list files"}, []string{"orchestrate", "list files"}},
		{[]string{"mcp: list"}, []string{"orchestrate", "--", "list"}},
		{[]string{"mcp: cancel", "--json"}, []string{"orchestrate", "--json", "--", "cancel"}},
		{[]string{"mcp show"}, []string{"orchestrate", "--", "show"}},
		{[]string{"route", "mcp: x"}, []string{"route", "mcp: x"}},
		{nil, nil},
	} {
		if diff := cmp.Diff(tt.want, expandGoal(tt.args)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

// The response contains the status before the decision, because the router answers before the run
// continues.
func TestApproveRun_PrintsDecision(t *testing.T) {
	tests := []struct {
		name, status string
		args         []string
		want         string
	}{
		{"approved", "waiting_approval", nil, "r  step write is approved\n"},
		{"denied", "waiting_approval", []string{"--deny"}, "r  step write is denied\n"},
		{"one of several gates", "running", nil, "r  step write is approved\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"orchestration_id":"r","status":"`+tt.status+`"}`)
			}))
			defer server.Close()
			var out strings.Builder
			root := newRootCommand()
			root.SetArgs(append([]string{"orchestrate", "approve", "r", "write", "--url", server.URL}, tt.args...))
			root.SetOut(&out)
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if out.String() != tt.want {
				t.Errorf("got %q, want %q", out.String(), tt.want)
			}
		})
	}
}

// A plan that is not JSON is rejected with its place, before the router is called.
func TestOrchestrate_RejectsPlanThatIsNotJSON(t *testing.T) {
	for _, tt := range []struct{ name, plan, want string }{
		{"cut off", "{\n  \"steps\": [", "plan.json:2:13: the plan is not JSON: the text ends too early"},
		{"empty", "", "plan.json: the plan is not JSON: it is empty"},
		{"duplicate member", `{"steps": [], "steps": []}`, `plan.json:1:15: the plan has a mistake: name "steps" appears more than once`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("plan.json", []byte(tt.plan), 0o600); err != nil {
				t.Fatal(err)
			}
			root := newRootCommand()
			root.SetArgs([]string{"orchestrate", "a goal", "--plan", "plan.json", "--url", "http://127.0.0.1:1"})
			err := root.ExecuteContext(t.Context())
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
