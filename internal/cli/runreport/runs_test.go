package runreport

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
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
