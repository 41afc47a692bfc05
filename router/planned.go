package router

import (
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/requests"
)

// recordParts is the plan as it goes on record.
func recordParts(p *plan) []requests.Part {
	parts := make([]requests.Part, len(p.parts))
	for i := range p.parts {
		pt := &p.parts[i]
		parts[i] = requests.Part{Subtask: pt.subtask, Title: pt.title, Intent: pt.intent, Domains: pt.domains, Agents: []string{}, Down: pt.down}
		for _, a := range pt.agents {
			parts[i].Agents = append(parts[i].Agents, a.ID)
		}
	}
	return parts
}

// planOf is a plan from its record. What the matcher decided stays decided: agents
// that have left the registry since are out, nobody new comes in.
func planOf(rec *requests.Record, view *View) *plan {
	p := &plan{decision: *rec.Decision, omitted: rec.Omitted, parts: make([]part, len(rec.Parts))}
	for i := range rec.Parts {
		pt := &rec.Parts[i]
		p.parts[i] = part{subtask: pt.Subtask, title: pt.Title, intent: pt.Intent, domains: pt.Domains, down: pt.Down}
		if len(pt.Agents) > 0 {
			p.parts[i].gone = pt.Agents[0]
		}
		for _, id := range pt.Agents {
			if agent := view.Registry.Agent(id); agent != nil && rec.Caller.MayUse(id) {
				p.parts[i].agents = append(p.parts[i].agents, agent)
			}
		}
	}
	return p
}

// interrupted is the answer of a request whose process ended before it did.
func interrupted(requestID, traceID string, d *contract.Decision) *contract.Response {
	resp := &contract.Response{
		RequestID: requestID, TraceID: traceID, Status: contract.StatusFailed, Decision: d,
		Tasks: []contract.TaskReport{}, Omitted: []contract.Omitted{}, Data: contract.ResponseData{Mode: contract.DataDispatch},
	}
	if d == nil {
		return resp
	}
	for _, id := range d.Chosen {
		resp.Tasks = append(resp.Tasks, contract.TaskReport{
			TaskID: requestID, AgentID: id, Status: contract.TaskFailed, Error: &contract.TaskError{
				Code: contract.TaskOutcomeUnknown, Detail: "the router ended while the request was being done: the agent may have done it",
			},
		})
	}
	return resp
}
