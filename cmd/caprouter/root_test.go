package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// The value of a flag has a name in capitals that occurs in the description, not the name of a Go
// type.
func TestHelp_NamesValuesOfFlags(t *testing.T) {
	typeName := regexp.MustCompile(`--[\w-]+ [a-z]\S*  `)
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmdline.FormatHelp(cmd, terminal.Options{Width: 100})) {
			if typeName.MatchString(line) || strings.Contains(line, `[="`) {
				t.Errorf("%s: got %q, want a name of the value", cmd.CommandPath(), line)
			}
		}
		for _, c := range cmd.Commands() {
			check(c)
		}
	}
	check(newRootCommand())
}

// The help fits a terminal of 80 columns, except for text to be copied.
func TestFormatHelp_FitsWidth(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		text := cmdline.FormatHelp(cmd, terminal.Options{Width: 80})
		before, after, _ := strings.Cut(text, "\nExamples:\n")
		_, after, _ = strings.Cut(after, "\n\n")
		for line := range strings.SplitSeq(before+"\n"+after, "\n") {
			if terminal.TextWidth(line) > 80 {
				t.Errorf("%s: got a line of %d columns: %q", cmd.CommandPath(), terminal.TextWidth(line), line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
}

// Every command has a summary, and an example if it has flags.
func TestCommands_AreDescribed(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: got summary %q, want a line without a full stop", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Runnable() && cmd.HasLocalFlags() && cmd.Example == "" {
			t.Errorf("%s: got flags and no example", cmd.CommandPath())
		}
		if cmd.Args == nil && cmd.Name() != "help" {
			t.Errorf("%s: got no check of the arguments", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.Long+"\n"+cmd.Example, "\n") {
			if terminal.TextWidth(line) > 110 {
				t.Errorf("%s: got a help line of %d columns: %q", cmd.CommandPath(), terminal.TextWidth(line), line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand())
}

func TestTokenCommand_DescribesEveryScope(t *testing.T) {
	help := newTokenCommand().Long
	for _, scope := range contract.Scopes() {
		if scope != contract.ScopeAllAgents && !strings.Contains(help, scope) { // the flag --agent grants that one
			t.Errorf("got no scope %s in the help of the command:\n%s", scope, help)
		}
	}
}
