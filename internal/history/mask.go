package history

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// maskResponse returns the response with masked texts of agents and of the model. If there
// is nothing to mask, it returns the response itself. Prompts, titles, logs and errors are
// masked already.
func maskResponse(resp *contract.Response, m *redact.Masking) *contract.Response {
	if m == nil {
		return resp
	}
	masked := *resp
	masked.Data.Answer = m.MaskText(resp.Data.Answer)
	changed := masked.Data.Answer != resp.Data.Answer
	for i := range resp.Data.Results {
		result := resp.Data.Results[i]
		data, dataChanged := maskMembers(result.Data, m)
		explanations, textsChanged := maskTexts(result.Explanations, m)
		if !dataChanged && !textsChanged {
			continue
		}
		if &masked.Data.Results[0] == &resp.Data.Results[0] {
			masked.Data.Results = slices.Clone(resp.Data.Results)
		}
		masked.Data.Results[i].Data, masked.Data.Results[i].Explanations = data, explanations
		changed = true
	}
	for i := range resp.Tasks {
		for k := range resp.Tasks[i].FailedOver {
			explanations, textsChanged := maskTexts(resp.Tasks[i].FailedOver[k].Explanations, m)
			if !textsChanged {
				continue
			}
			if &masked.Tasks[0] == &resp.Tasks[0] {
				masked.Tasks = slices.Clone(resp.Tasks)
			}
			if &masked.Tasks[i].FailedOver[0] == &resp.Tasks[i].FailedOver[0] {
				masked.Tasks[i].FailedOver = slices.Clone(resp.Tasks[i].FailedOver)
			}
			masked.Tasks[i].FailedOver[k].Explanations = explanations
			changed = true
		}
	}
	if !changed {
		return resp
	}
	return &masked
}

func maskMembers(data map[string]json.RawMessage, m *redact.Masking) (masked map[string]json.RawMessage, changed bool) {
	masked = data
	for name, value := range data {
		maskedName, maskedValue := m.MaskMember(name, value, contract.DataClasses{contract.NoClasses})
		if maskedName == name && bytes.Equal(maskedValue, value) {
			continue
		}
		if !changed {
			masked, changed = maps.Clone(data), true
		}
		delete(masked, name)
		masked[maskedName] = maskedValue
	}
	return masked, changed
}

func maskTexts(texts []string, m *redact.Masking) (masked []string, changed bool) {
	masked = texts
	for i, text := range texts {
		maskedText := m.MaskText(text)
		if maskedText == text {
			continue
		}
		if !changed {
			masked, changed = slices.Clone(texts), true
		}
		masked[i] = maskedText
	}
	return masked, changed
}
