package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
)

// correction is the agent and intent to write for a prompt. Without an agent, no agent
// serves it.
type correction struct{ prompt, agent, intent string }

// planEdits returns the changes of both files, checked as far as possible, and prints
// them. There are none if the files contain the correction.
func (t *teacher) planEdits(before []byte, snapshot *capabilities.Snapshot, c *correction) ([]fileEdit, error) {
	var edits []fileEdit
	out := t.dialog.out
	switch {
	case c.agent == "":
	case slices.Contains(snapshot.Entry(c.agent).Examples[c.intent], c.prompt):
		fmt.Fprintf(out, "  %s: %s has this example of %s already\n", t.registry, c.agent, c.intent)
	default:
		after, err := capabilities.AddExample(t.registry, before, c.agent, c.intent, c.prompt)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "  %s: + example of %s of %s\n", t.registry, c.intent, c.agent)
		if err := printNewFindings(out, t.registry, snapshot, after); err != nil {
			return nil, err
		}
		edits = append(edits, fileEdit{t.registry, before, after})
	}
	added := golden.Case{Input: c.prompt, Expect: golden.Expect{Outcome: golden.AnyFallback}}
	if c.agent != "" {
		added.Expect = golden.Expect{Outcome: golden.Dispatch, Agents: []string{c.agent}, Intent: c.intent}
	}
	edit, err := addCase(t.cases, &added, golden.NewDeclaredNames(snapshot))
	if isDuplicate(err) {
		fmt.Fprintf(out, "  %s\n", oneLine(err.Error()))
		return edits, nil
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "  %s: + case %s\n", t.cases, added.ID)
	return append(edits, edit), nil
}

// printNewFindings prints the findings of lint that the change causes.
func printNewFindings(out io.Writer, file string, before *capabilities.Snapshot, after []byte) error {
	changed, err := capabilities.Parse(file, after)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, f := range capabilities.Lint(before) {
		known[f.Message] = true
	}
	for _, f := range capabilities.Lint(changed) {
		if !known[f.Message] {
			fmt.Fprintf(out, "  lint: %s: %s\n", f.Severity, oneLine(f.Message))
		}
	}
	return nil
}
