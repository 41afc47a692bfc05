package classifier

import (
	"slices"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// replySchema is the shape of a reply about these agents (003 §2). A model that
// honours it cannot name what they do not declare, nor "*", and is never forced
// to name one of them: unknown is always there.
func replySchema(agents []*contract.RegistryEntry) *llm.Schema {
	var intents, domains []string
	for _, a := range agents {
		intents = append(intents, a.Match.Intent...)
		domains = append(domains, a.Match.Domains...)
	}
	intent := &llm.Schema{Type: "string", Enum: enum(intents)}
	someDomains := &llm.Schema{Type: "array", Items: &llm.Schema{Type: "string", Enum: enum(domains)}}
	return object(
		llm.Property{Name: "intent", Schema: intent},
		llm.Property{Name: "domains", Schema: someDomains},
		llm.Property{Name: "subtasks", Schema: &llm.Schema{Type: "array", Items: object(
			llm.Property{Name: "title", Schema: &llm.Schema{Type: "string"}},
			llm.Property{Name: "reason", Schema: &llm.Schema{Type: "string"}},
			llm.Property{Name: "intent", Schema: intent},
			llm.Property{Name: "domains", Schema: someDomains},
		)}},
		llm.Property{Name: "confidence", Schema: &llm.Schema{Type: "number", Description: "from 0 to 1"}},
	)
}

func object(properties ...llm.Property) *llm.Schema {
	return &llm.Schema{Type: "object", Properties: properties}
}

// enum sorts the names, so that the same agents make the same schema, and puts
// unknown behind them.
func enum(names []string) []string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), reserved)
	return append(names, contract.Unknown)
}
