//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docException is a command of a document that TestDocs does not run.
type docException struct {
	doc     string // name of the document
	command string // prefix of the command
	why     string
}

// docExceptions lists all commands that are not run. A row without a command fails.
func docExceptions() []docException {
	return []docException{
		{"README.md", "go test ./...", "it is this test"},
		{"agents.md", `curl -X POST "$CALLBACK_URL"`, "needs a task that an agent has accepted; the tests of agentkit post results"},
		{"monitoring.md", "docker run", "needs docker, and an image from the Internet"},
		{"agents.md", `curl -X POST "${CALLBACK_URL%/result}/progress"`, "the same"},
	}
}

// TestDocs runs every command of the README and of docs, in order, and compares the output with
// that in the document. parseDocument describes the marks of commands, and docFigures the values
// that may differ.
func TestDocs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no documents (%v)", err)
	}
	exceptions := docExceptions()
	used := make([]bool, len(exceptions))
	for _, file := range append(files, "../../README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		steps, err := parseDocument(string(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		steps = slices.DeleteFunc(steps, func(step docStep) bool {
			i := slices.IndexFunc(exceptions, func(e docException) bool {
				return e.doc == name && step.command != "" && strings.HasPrefix(step.command, e.command)
			})
			if i >= 0 {
				used[i] = true
			}
			return i >= 0
		})
		if len(steps) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDocSession(t)
			for i := range steps {
				if err := s.run(&steps[i]); err != nil {
					t.Errorf("%s:%d: %s%s: %v", name, steps[i].line, steps[i].command, steps[i].file, err)
				}
			}
		})
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("%s: got no command %q: remove the row", e.doc, e.command)
		}
	}
}
