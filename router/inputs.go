package router

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// inputs is what the agents of one request receive: the prompt and the caller's
// inputs (Validate has refused an input of the prompt's name). An agent gets the
// original text unless its registry entry says otherwise: then the values and the
// names of the inputs are masked, and a value is read by its name.
type inputs struct {
	job      *job
	original map[string]json.RawMessage
}

func newInputs(j *job) *inputs {
	original := make(map[string]json.RawMessage, len(j.req.Content.Inputs)+1)
	maps.Copy(original, j.req.Content.Inputs)
	original["prompt"] = quoted(j.req.Content.Prompt)
	return &inputs{job: j, original: original}
}

// of is what the agent receives. It is called by the tasks of a request at the
// same time.
func (in *inputs) of(agent *contract.RegistryEntry) map[string]json.RawMessage {
	if len(agent.Restore) == 0 || slices.Contains(agent.Restore, capabilities.RestoreAll) {
		return in.original
	}
	m := in.job.masking
	masked := make(map[string]json.RawMessage, len(in.original))
	given := in.job.req.Content.Inputs
	for _, name := range slices.Sorted(maps.Keys(given)) { // placeholders are numbered in this order
		hidden, raw := m.MaskMember(name, given[name], agent.Restore)
		masked[hidden] = raw
	}
	masked["prompt"] = quoted(m.RestoreText(in.job.prompt, agent.Restore))
	return masked
}

func quoted(text string) json.RawMessage {
	raw, err := strictjson.Marshal(text)
	if err != nil {
		// Only invalid UTF-8 can fail here, and the edge has refused that.
		return json.RawMessage(`""`)
	}
	return raw
}
