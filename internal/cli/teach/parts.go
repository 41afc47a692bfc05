package teach

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// example is a text to be added to the examples of an agent's intent.
type example struct{ agent, intent, text string }

// part is one of the subtasks of a reading, and the agent that is right for it; "" if none is known.
type part struct {
	text, intent, agent string
}

// assignParts returns the subtasks whose text is in the prompt, with the agents that are right for
// them: first those that serve the intent of a subtask; then, if as many agents as subtasks are left,
// these in their order. missing are the agents without a part.
func assignParts(prompt string, subtasks []contract.Subtask, agents []*contract.RegistryEntry) (parts []part, missing []string) {
	var open []int // indices of parts without an agent
	for i := range subtasks {
		s := &subtasks[i]
		if !strings.Contains(prompt, s.Title) { // it is shortened, masked or was written by a model
			continue
		}
		p := part{text: s.Title, intent: s.Intent}
		if n := slices.IndexFunc(agents, func(a *contract.RegistryEntry) bool { return slices.Contains(a.Match.Intent, s.Intent) }); n >= 0 {
			p.agent = agents[n].ID
		} else {
			open = append(open, len(parts))
		}
		parts = append(parts, p)
	}
	for _, a := range agents {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.agent == a.ID }) {
			missing = append(missing, a.ID)
		}
	}
	if len(open) == len(missing) {
		for i, id := range missing {
			parts[open[i]].agent = id
		}
		missing = nil
	}
	return parts, missing
}

// chooseExamples returns an example for each part of a request for several agents. It asks for
// the intent of a part that is not read as one of its agent. There are none if the request is not
// split into a part for each agent. answer is answerSkip or answerQuit if the user leaves a question.
func (t *Teacher) chooseExamples(
	ctx context.Context, snapshot *capabilities.Snapshot, r *Reading, prompt string, ids []string, likely map[string]float64,
) (examples []example, answer string, err error) {
	agents := make([]*contract.RegistryEntry, len(ids))
	for i, id := range ids {
		agents[i] = snapshot.Entry(id)
	}
	d := cmp.Or(r.Response.Decision, &contract.Decision{})
	subtasks := d.Classification.Subtasks
	parts, missing := assignParts(prompt, subtasks, agents)
	if len(missing) > 0 {
		fmt.Fprintf(t.dialog.out, "  %s, so no examples are added\n", describeMissing(d, missing))
		return nil, NoAgent, nil
	}
	for i, p := range parts {
		if p.agent == "" {
			continue
		}
		agent := snapshot.Entry(p.agent)
		if named := intentsOf(agent, t.Intents); len(named) > 0 {
			p.intent = named[0]
		} else if !slices.Contains(agent.Match.Intent, p.intent) {
			if len(agent.Match.Intent) > 1 {
				fmt.Fprintf(t.dialog.out, "part %d: %s\n", i+1, terminal.OneLine(p.text))
			}
			p.intent, err = t.chooseIntent(ctx, agent, likely)
			if err != nil || p.intent == answerSkip || p.intent == answerQuit {
				return nil, p.intent, err
			}
		}
		examples = append(examples, example{p.agent, p.intent, p.text})
	}
	return examples, NoAgent, nil
}

// chooseIntent returns the intent of the agent that --expect-intent names, or asks for it.
func (t *Teacher) chooseIntent(ctx context.Context, agent *contract.RegistryEntry, likely map[string]float64) (string, error) {
	if named := intentsOf(agent, t.Intents); len(named) > 0 {
		return named[0], nil
	}
	return t.dialog.chooseIntent(ctx, agent, likely)
}

// describeMissing returns how a request was read, and the agents without a part of it.
func describeMissing(d *contract.Decision, missing []string) string {
	parts := "one part"
	if n := len(d.Classification.Subtasks); n > 0 {
		parts = plaintext.CountNoun(n, "part")
	} else {
		missing = slices.DeleteFunc(missing, func(id string) bool { return slices.Contains(d.Chosen, id) })
	}
	text := "the request is read as " + parts
	if len(d.Chosen) > 0 {
		text += ", for " + strings.Join(d.Chosen, ", ")
	}
	if len(missing) > 0 {
		text += ": no part for " + strings.Join(missing, ", ")
	}
	return text
}
