// Package teach corrects readings of requests together with a person: it asks which agent and
// intent are right, and writes the request as an example into the registry file and as a golden
// case into the case file.
package teach

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/email"
	"github.com/caprouter/caprouter/internal/lexical"
	"github.com/caprouter/caprouter/internal/run"
)

// Reading is a prompt and the decision on it.
type Reading struct {
	Prompt   string
	Tenant   string            // of the caller; "" = none
	Response contract.Response // status, decision and feedback
}

// Config are the files of a Teacher, and what it does not ask.
type Config struct {
	Registry, Cases string                   // paths of files; that of the cases need not exist
	Lexical         func() *lexical.Model    // of the registry before the first change
	Expect          []string                 // answer to the question for the agent; empty if it is asked
	Intents         []string                 // answers to the questions for intents
	Yes             bool                     // write without the last question
	Check           func(added string) error // runs after each change, with the id of the new case or ""
	// FindBroken returns the cases that pass now, and fail with the registry.
	FindBroken func(*capabilities.Snapshot) ([]golden.CaseResult, error)
}

// Teacher asks for corrections and writes them.
type Teacher struct {
	Config
	dialog *dialog
}

// New returns a Teacher that asks on out and reads the answers from in, in a goroutine
// of the group.
func New(group *run.Group, in io.Reader, out io.Writer, cfg Config) *Teacher {
	return &Teacher{Config: cfg, dialog: newDialog(group, in, out)}
}

// TeachReading asks which agent is right for one reading and writes the correction. It
// reports whether the user wants to see further readings.
func (t *Teacher) TeachReading(ctx context.Context, r *Reading) (goOn bool, err error) {
	before, err := localfile.ReadForEdit(t.Registry)
	if err != nil {
		return false, err
	}
	snapshot, err := capabilities.Parse(t.Registry, before)
	if err != nil {
		return false, err
	}
	explain.PrintReading(t.dialog.out, &r.Response, explain.Options{Options: terminal.DetectOptions(t.dialog.out), Prompt: r.Prompt})
	answer, likely := t.Expect, t.confidences(r)
	if len(answer) == 0 {
		agents := expectedFirst(orderAgents(snapshot, r.Response.Decision, likely), r.Response.Feedback)
		answer, err = t.dialog.chooseAgents(ctx, agents, likely, snapshot.Fleet.Grants)
		if err != nil || answer[0] == answerSkip || answer[0] == answerQuit {
			return err == nil && answer[0] == answerSkip, err
		}
	}
	added := correction{prompt: r.Prompt, tenant: r.Tenant}
	if answer[0] != NoAgent {
		added.agents = answer
	}
	if len(added.agents) == 1 {
		intent, err := t.chooseIntent(ctx, snapshot.Entry(answer[0]), likely)
		if err != nil || intent == answerSkip || intent == answerQuit {
			return intent == answerSkip, err
		}
		added.examples = []example{{answer[0], intent, email.Body(r.Prompt)}}
	}
	if masked := FindPlaceholders(r.Prompt); len(masked) > 0 {
		question := fmt.Sprintf("The text is masked: %s. Type it with invented values, or Enter to keep it: ", strings.Join(masked, ", "))
		text, err := t.dialog.ask(ctx, question)
		if err != nil {
			return false, err
		}
		added.prompt = cmp.Or(text, r.Prompt)
		for i := range added.examples {
			added.examples[i].text = email.Body(added.prompt)
		}
	}
	if len(added.agents) > 1 {
		var left string
		added.examples, left, err = t.chooseExamples(ctx, snapshot, r, added.prompt, added.agents, likely)
		if err != nil || left == answerSkip || left == answerQuit {
			return left == answerSkip, err
		}
	}
	edits, id, err := t.planEdits(before, snapshot, &added)
	if err != nil || len(edits) == 0 {
		return err == nil, err
	}
	if err := t.printBroken(edits); err != nil {
		return false, err
	}
	if !t.Yes {
		if yes, err := t.dialog.confirm(ctx, "Write? [Y/n] "); err != nil || !yes {
			return err == nil, err
		}
	}
	if err := localfile.ApplyEdits(ctx, edits); err != nil {
		return false, err
	}
	for _, e := range edits {
		fmt.Fprintf(t.dialog.out, "wrote %s\n", e.Path)
	}
	return true, t.Check(id)
}

// confidences returns the confidence in the likeliest intents of a reading. A model that finds
// no intent gives none: then they are those of the lexical classifier.
func (t *Teacher) confidences(r *Reading) map[string]float64 {
	likely := map[string]float64{}
	var source contract.Source
	add := func(scores []contract.IntentScore) {
		for _, s := range scores {
			likely[s.Intent] = max(likely[s.Intent], s.Confidence)
		}
	}
	if d := r.Response.Decision; d != nil {
		c := &d.Classification
		source = c.Source
		add(c.Alternatives)
		add([]contract.IntentScore{{Intent: c.Intent, Confidence: c.Confidence}})
		for i := range c.Subtasks {
			add(c.Subtasks[i].Alternatives)
			add([]contract.IntentScore{{Intent: c.Subtasks[i].Intent, Confidence: c.Subtasks[i].Confidence}})
		}
	}
	delete(likely, contract.Unknown)
	delete(likely, "") // of a subtask with the intent of the request
	if len(likely) == 0 && source != contract.SourceLexical {
		p := t.Lexical().Classify(r.Prompt)
		add(append(p.Alternatives, contract.IntentScore{Intent: p.BestIntent, Confidence: p.Confidence}))
	}
	return likely
}

// expectedFirst moves the agents that feedback expects to the front.
func expectedFirst(agents []*contract.RegistryEntry, feedback []contract.Feedback) []*contract.RegistryEntry {
	expected := ExpectedAgents(feedback)
	var first, others []*contract.RegistryEntry
	for _, a := range agents {
		if slices.Contains(expected, a.ID) {
			first = append(first, a)
		} else {
			others = append(others, a)
		}
	}
	return append(first, others...)
}

// orderAgents returns the agents of the registry: those that were considered first, then those
// with the likeliest intents.
func orderAgents(s *capabilities.Snapshot, d *contract.Decision, likely map[string]float64) []*contract.RegistryEntry {
	rank := map[string]int{}
	if d != nil {
		for i := range d.Candidates {
			if id := d.Candidates[i].AgentID; rank[id] == 0 {
				rank[id] = len(d.Candidates) - i
			}
		}
	}
	confidence := func(a *contract.RegistryEntry) (best float64) {
		for _, intent := range a.Match.Intent {
			best = max(best, likely[intent])
		}
		return best
	}
	agents := s.Entries()
	slices.SortStableFunc(agents, func(a, b *contract.RegistryEntry) int {
		return cmp.Or(cmp.Compare(rank[b.ID], rank[a.ID]), cmp.Compare(confidence(b), confidence(a)))
	})
	return agents
}
