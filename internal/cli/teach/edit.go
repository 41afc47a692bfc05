package teach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// correction is what is right for a prompt: its agents, none if no agent serves it, and the examples
// to add.
type correction struct {
	prompt   string
	tenant   string // of the caller
	agents   []string
	examples []example
}

// planEdits returns the changes of both files, checked as far as possible, and prints
// them. There are none if the files contain the correction. id is the id of the case that expects
// the correction, or "".
func (t *Teacher) planEdits(before []byte, snapshot *capabilities.Snapshot, c *correction) (edits []localfile.Edit, id string, err error) {
	out := t.dialog.out
	after := before
	for _, e := range c.examples {
		detail := ""
		if e.text != c.prompt {
			detail = ": " + terminal.OneLine(e.text)
		}
		if slices.Contains(snapshot.Entry(e.agent).Examples[e.intent], e.text) {
			fmt.Fprintf(out, "  %s: %s has this example of %s already%s\n", t.Registry, e.agent, e.intent, detail)
			continue
		}
		if after, err = capabilities.AddExample(t.Registry, after, e.agent, e.intent, e.text); err != nil {
			return nil, "", err
		}
		fmt.Fprintf(out, "  %s: + example of %s of %s%s\n", t.Registry, e.intent, e.agent, detail)
	}
	if !bytes.Equal(before, after) {
		if err := PrintNewFindings(out, t.Registry, snapshot, after); err != nil {
			return nil, "", err
		}
		edits = append(edits, localfile.Edit{Path: t.Registry, Before: before, After: after})
	}
	added := golden.Case{Input: c.prompt, Expect: golden.Expect{Outcome: golden.AnyFallback}}
	if len(c.agents) > 0 {
		added.Expect = golden.Expect{Outcome: golden.Dispatch, Agents: c.agents}
	}
	added.Tenant = TenantOfCase(snapshot, c.agents, c.tenant)
	if len(c.agents) == 1 {
		added.Expect.Intent = c.examples[0].intent
	}
	edit, err := AddCase(t.Cases, &added, golden.NewDeclaredNames(snapshot))
	if duplicate, ok := errors.AsType[*golden.DuplicateError](err); ok {
		fmt.Fprintf(out, "  %s\n", terminal.OneLine(err.Error()))
		if duplicate.Agrees {
			return edits, duplicate.ID, nil
		}
		return edits, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	fmt.Fprintf(out, "  %s: + case %s\n", t.Cases, added.ID)
	return append(edits, edit), added.ID, nil
}

// PrintNewFindings prints the findings of lint that the change causes.
func PrintNewFindings(out io.Writer, file string, before *capabilities.Snapshot, after []byte) error {
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
			fmt.Fprintf(out, "  lint: %s: %s\n", f.Severity, terminal.OneLine(f.Message))
		}
	}
	return nil
}

// printBroken prints the cases that pass now, and fail with the edited registry.
func (t *Teacher) printBroken(edits []localfile.Edit) error {
	at := slices.IndexFunc(edits, func(e localfile.Edit) bool { return e.Path == t.Registry })
	if at < 0 {
		return nil
	}
	registry, err := capabilities.Parse(t.Registry, edits[at].After)
	if err != nil {
		return err
	}
	broken, err := t.FindBroken(registry)
	if err != nil {
		return err
	}
	for i := range broken {
		c := &broken[i]
		fmt.Fprintf(t.dialog.out, "  fails then: case %s: %s: %s\n", terminal.OneLine(c.ID), terminal.OneLine(c.Input), terminal.OneLine(strings.Join(c.Differences, "; ")))
	}
	return nil
}
