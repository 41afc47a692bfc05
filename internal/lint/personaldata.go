package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/redact"
)

// findPersonalData reports agents whose texts contain personal data or secrets. Its messages
// name the kinds only.
func findPersonalData(c *capabilities.Catalogue) ([]capabilities.Finding, error) {
	kinds := slices.DeleteFunc(redact.Kinds(), func(kind string) bool { return kind == redact.IP }) // an address of a network is often meant
	redactor, err := redact.New(redact.Config{Kinds: kinds})
	if err != nil {
		return nil, err
	}
	var findings []capabilities.Finding
	for _, agent := range c.Agents {
		masking := redactor.StartMasking()
		for _, text := range agentTexts(agent) {
			masking.MaskText(text)
		}
		if found := masking.Kinds(); len(found) > 0 {
			findings = append(findings, capabilities.Finding{
				Rule: RulePersonalData, Severity: capabilities.SeverityWarning, Agents: []string{agent.ID},
				Message: fmt.Sprintf("the texts of %s contain personal data or secrets (%s): write invented values; a model receives them masked", agent.ID, strings.Join(found, ", ")),
			})
		}
	}
	return findings, nil
}

// agentTexts returns the texts that describe the agent.
func agentTexts(agent *contract.RegistryEntry) []string {
	texts := slices.Concat([]string{agent.Description}, agent.Keywords, agent.NotFor)
	for _, examples := range agent.Examples {
		texts = append(texts, examples...)
	}
	return texts
}
