package dispatch_test

import (
	"context"
	"path"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
)

// instance returns an active instance whose address ends with its name.
func instance(name string, change ...func(*contract.Instance)) contract.Instance {
	in := contract.Instance{
		Name: name, State: contract.AgentActive,
		Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://127.0.0.1:1/" + name},
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func inState(state contract.AgentState) func(*contract.Instance) {
	return func(in *contract.Instance) { in.State = state }
}

func withLimit(n int) func(*contract.Instance) {
	return func(in *contract.Instance) { in.MaxInFlight = n }
}

// registered returns the entry of a registered agent.
func registered(id string, instances ...contract.Instance) *contract.RegistryEntry {
	return &contract.RegistryEntry{ID: id, Origin: contract.OriginRegistration, State: contract.AgentActive, Instances: instances}
}

// calledInstance returns the name of the instance that the target calls.
func calledInstance(c dispatch.Call) string { return path.Base(c.Agent.Endpoint.URL) }

// calledInstances returns the names of the instances that were called since the last
// call of the method.
func (s *scriptedTarget) calledInstances() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for _, c := range s.calls {
		names = append(names, calledInstance(c))
	}
	s.calls = nil
	return names
}

// answerBy sets the outcomes of the instances; the others succeed. As with a real
// target, the number of the attempt is that of the task.
func (s *scriptedTarget) answerBy(outcomes map[string]dispatch.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = func(_ context.Context, c dispatch.Call) dispatch.Outcome {
		out, ok := outcomes[calledInstance(c)]
		if !ok {
			out = success
		}
		out.Attempts += max(c.Task.Attempt, 1) - 1
		return out
	}
}
