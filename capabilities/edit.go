package capabilities

import (
	"fmt"
	"slices"

	"github.com/caprouter/caprouter/internal/yamledit"
)

// AddExample returns the registry file with the text as another example of the agent's
// intent. Comments and formatting of the file survive. The result is a valid registry.
func AddExample(file string, data []byte, agent, intent, text string) ([]byte, error) {
	before, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	entry := before.Entry(agent)
	switch {
	case entry == nil:
		return nil, fmt.Errorf("%s has no agent %s", file, agent)
	case !slices.Contains(entry.Match.Intent, intent):
		return nil, fmt.Errorf("%s: agent %s does not declare the intent %s", file, agent, intent)
	}
	if problem := textProblem(text, maxUtteranceLength); problem != "" {
		return nil, fmt.Errorf("%q cannot be an example: it %s", truncateText(text), problem)
	}
	clients := "clients"
	if yamledit.Has(data, "agents") {
		clients = "agents"
	}
	changed, err := yamledit.Append(data, []string{clients, agent, "examples", intent}, yamledit.Item{yamledit.Quote(text)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := Parse(file, changed); err != nil {
		return nil, err
	}
	return changed, nil
}
