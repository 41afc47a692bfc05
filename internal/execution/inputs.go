package execution

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// taskInputs are the prompt and the inputs of one request, as its agents receive
// them. An agent gets the original text unless its registry entry declares
// "restore": then values and names of inputs are masked, except for the kinds of
// data that it declares. Validation rejects an input that is called "prompt".
type taskInputs struct {
	request  *Request
	original map[string]json.RawMessage
}

func newTaskInputs(req *Request) *taskInputs {
	original := make(map[string]json.RawMessage, len(req.Content.Inputs)+1)
	maps.Copy(original, req.Content.Inputs)
	original["prompt"] = strictjson.QuoteString(req.Content.Prompt)
	return &taskInputs{request: req, original: original}
}

// forAgent returns the inputs for one agent. The parts of a request call it
// concurrently.
func (in *taskInputs) forAgent(agent *contract.RegistryEntry) map[string]json.RawMessage {
	if len(agent.Restore) == 0 || slices.Contains(agent.Restore, contract.AllClasses) {
		return in.original
	}
	masking := in.request.Masking
	masked := make(map[string]json.RawMessage, len(in.original))
	inputs := in.request.Content.Inputs
	for _, name := range slices.Sorted(maps.Keys(inputs)) { // placeholders are numbered in this order
		maskedName, value := masking.MaskMember(name, inputs[name], agent.Restore)
		masked[maskedName] = value
	}
	masked["prompt"] = strictjson.QuoteString(masking.RestoreText(in.request.Prompt, agent.Restore))
	return masked
}

// historyFor returns the conversation that precedes the prompt for one agent.
func (in *taskInputs) historyFor(agent *contract.RegistryEntry) []contract.Turn {
	turns := slices.Clone(in.request.Turns)
	for i := range turns {
		turns[i].Content = in.request.Masking.RestoreText(turns[i].Content, agent.Restore)
	}
	return turns
}
