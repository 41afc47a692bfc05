package runreport

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

func TestEventPrinter_PrintsEventsWithoutTrailingBlanks(t *testing.T) {
	var out strings.Builder
	p := EventPrinter{Out: &out}
	p.Print("r", &contract.RunEvent{State: "PLAN", Event: "tool_schema_loaded"})
	p.Print("r", &contract.RunEvent{State: "EXECUTE", Event: "plan_ready", Detail: "1 step"})
	want := "orchestration r\nPLAN      tool_schema_loaded\nEXECUTE   plan_ready          1 step\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The rule is at the end of the line of an approval, and is what the reader has to judge.
func TestFormatRuns_PrintsWholeApprovals(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 0, 0, time.UTC)
	got := FormatRuns([]contract.RunSummary{{
		OrchestrationID: "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90", Status: contract.OrchestrationWaiting, CreatedAt: at, Goal: strings.Repeat("goal ", 20),
		Gates: []contract.ApprovalGate{{StepID: "save", Action: "files.write_file", Rule: "write_outside_workspace", ExpiresAt: at.Add(time.Hour)}},
	}}, terminal.Options{Width: terminal.DefaultWidth})
	want := `TIME (UTC)   ORCHESTRATION                         STATUS
01-02 15:04  01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90  waiting_approval
             goal goal goal goal goal goal goal goal goal goal goal goal goal g…
             waits: step save, files.write_file, until 2026-01-02 16:04 UTC
             (write_outside_workspace)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
