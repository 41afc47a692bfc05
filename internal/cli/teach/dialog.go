package teach

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// Answers to the question for the agent that are no agent.
const (
	answerSkip = ""
	NoAgent    = "none"
	answerQuit = "q"
)

// maxListedAgents bounds the agents that a question lists.
const maxListedAgents = 20

var errInputEnded = errors.New("standard input ended before the answer: nothing more was written")

// dialog asks questions, one at a time. Answers are lines.
type dialog struct {
	out   io.Writer
	lines <-chan string // closed at the end of the input
	echo  bool          // print the answers, because the input is no terminal
}

// newDialog reads answers in a goroutine of the group, so that a question ends with its
// context although the input is blocked.
func newDialog(group *run.Group, in io.Reader, out io.Writer) *dialog {
	const maxAnswer = contract.MaxPromptBytes
	lines := make(chan string)
	group.Go("read answers", func(ctx context.Context) error {
		defer close(lines)
		answers := bufio.NewScanner(in)
		answers.Buffer(nil, maxAnswer)
		for answers.Scan() {
			select {
			case lines <- answers.Text():
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	w, ok := in.(io.Writer) // a terminal is a file
	return &dialog{out: out, lines: lines, echo: !ok || !terminal.IsTerminal(w)}
}

// ask returns the answer without surrounding space.
func (d *dialog) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(d.out, question)
	select {
	case line, ok := <-d.lines:
		if !ok {
			fmt.Fprintln(d.out)
			return "", errInputEnded
		}
		if d.echo {
			fmt.Fprintln(d.out, terminal.OneLine(line))
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		fmt.Fprintln(d.out)
		return "", ctx.Err()
	}
}

func (d *dialog) confirm(ctx context.Context, question string) (bool, error) {
	for {
		answer, err := d.ask(ctx, question)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "", "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// chooseAgents returns the ids of agents, or one of the other answers. It prints the intents
// with the confidence in them. Agents that only have a grant cannot be chosen, because their
// examples are in their registrations.
func (d *dialog) chooseAgents(
	ctx context.Context, agents []*contract.RegistryEntry, likely map[string]float64, grants map[string]contract.Grant,
) ([]string, error) {
	ids := make([]string, len(agents))
	var rows []terminal.Row
	for i, a := range agents {
		ids[i] = a.ID
		if i < maxListedAgents {
			rows = append(rows, terminal.Row{Cells: []terminal.Cell{
				{Text: strconv.Itoa(i + 1), Right: true}, {Text: a.ID, Style: terminal.Bold}, {Text: formatIntents(a.Match.Intent, likely)},
			}})
		}
	}
	d.printChoices(rows, len(agents))
	if len(grants) > 0 {
		registered := slices.Sorted(maps.Keys(grants))
		if len(registered) > maxListedAgents {
			registered = append(registered[:maxListedAgents], "…")
		}
		fmt.Fprintf(d.out, "  not listed, because they register themselves: %s\n", strings.Join(registered, ", "))
	}
	const question = "Which agent is right? Number or id, several with commas, none, Enter to skip, q to quit: "
	for {
		answer, err := d.ask(ctx, question)
		if err != nil {
			return nil, err
		}
		if slices.Contains([]string{answerSkip, NoAgent, answerQuit}, answer) {
			return []string{answer}, nil
		}
		chosen, unknown := parseChoices(answer, ids)
		if unknown == "" {
			return chosen, nil
		}
		fmt.Fprintln(d.out, explainAgent(unknown, ids, grants))
	}
}

// parseChoices returns the choices that the answer names, by number or name, with commas between
// them, or the first word that names none.
func parseChoices(answer string, choices []string) (chosen []string, unknown string) {
	for word := range strings.SplitSeq(answer, ",") {
		word = strings.TrimSpace(word)
		choice, ok := parseChoice(word, choices)
		if !ok {
			return nil, cmp.Or(word, answer)
		}
		if !slices.Contains(chosen, choice) {
			chosen = append(chosen, choice)
		}
	}
	return chosen, ""
}

// parseChoice returns the choice that the word names, by number or name.
func parseChoice(word string, choices []string) (string, bool) {
	if n, err := strconv.Atoi(word); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1], true
	}
	return word, slices.Contains(choices, word)
}

// explainAgent returns why the answer is no agent that can be taught.
func explainAgent(answer string, ids []string, grants map[string]contract.Grant) string {
	if _, granted := grants[answer]; granted {
		return answer + " registers itself: add the text to the examples of its registration (PUT /api/v1/agents/" + answer + "), and let it register again"
	}
	return suggestChoice("agent", answer, ids)
}

// formatIntents returns the intents with the confidence in those that are likely at all.
func formatIntents(intents []string, likely map[string]float64) string {
	const least = 0.005 // is printed as 0.01
	texts := slices.Clone(intents)
	for i, intent := range texts {
		if c := likely[intent]; c >= least {
			texts[i] = fmt.Sprintf("%s %.2f", intent, c)
		}
	}
	return strings.Join(texts, ", ")
}

// chooseIntent returns an intent of the agent, or one of the other answers. It prints the
// confidence in the intents. It does not ask if there is only one.
func (d *dialog) chooseIntent(ctx context.Context, agent *contract.RegistryEntry, likely map[string]float64) (string, error) {
	intents := agent.Match.Intent
	if len(intents) == 1 {
		return intents[0], nil
	}
	var rows []terminal.Row
	for i, intent := range intents {
		rows = append(rows, terminal.Row{Cells: []terminal.Cell{{Text: strconv.Itoa(i + 1), Right: true}, {Text: formatIntents([]string{intent}, likely)}}})
	}
	d.printChoices(rows, len(intents))
	question := fmt.Sprintf("Which intent of %s? Number or name, Enter to skip, q to quit: ", agent.ID)
	return d.choose(ctx, question, intents, []string{answerSkip, answerQuit}, func(answer string) string {
		return suggestChoice("intent", answer, intents)
	})
}

func (d *dialog) printChoices(rows []terminal.Row, total int) {
	p := terminal.NewPrinter(terminal.DetectOptions(d.out))
	p.Margin = len(terminal.Indent)
	p.WriteTable("", rows)
	if n := total - len(rows); n > 0 {
		p.WriteField("", fmt.Sprintf("… and %d more: type the id", n), terminal.Dim)
	}
	fmt.Fprint(d.out, p.String())
}

// choose asks until the answer is a number of a choice, a choice, or one of the others.
// It prints what explain returns about another answer.
func (d *dialog) choose(ctx context.Context, question string, choices, others []string, explain func(answer string) string) (string, error) {
	for {
		answer, err := d.ask(ctx, question)
		if err != nil {
			return "", err
		}
		if choice, ok := parseChoice(answer, choices); ok || slices.Contains(others, answer) {
			return choice, nil
		}
		fmt.Fprintln(d.out, explain(answer))
	}
}

// suggestChoice returns that the answer is no choice, and the nearest one.
func suggestChoice(what, answer string, choices []string) string {
	hint := ""
	if near := strictyaml.Nearest(answer, choices); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Sprintf("there is no %s %q%s", what, answer, hint)
}
