package doctor

import (
	"context"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// checkPlanner reports agents that turn their tasks into goals, if no model plans them. A
// registry without such agents has no finding, and one that cannot be loaded is another check.
func (d *diagnosis) checkPlanner(context.Context) Finding {
	registry, _ := d.Registry.FilePath()
	snapshot, err := capabilities.Load(registry)
	if err != nil {
		return Finding{}
	}
	ids := snapshot.Fleet.WithProtocol(contract.ProtocolOrchestrator)
	switch {
	case len(ids) == 0:
		return Finding{}
	case d.Orchestrator.Planner.IsModel():
		return checkPassed(d.Orchestrator.Planner.Kind + " plans the tasks of " + strings.Join(ids, ", "))
	}
	return checkWarned("no model plans: every task of "+strings.Join(ids, ", ")+" ends with planner_not_configured",
		"set orchestrator.planner.kind to gemini, genai or openai")
}
