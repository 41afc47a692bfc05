// Package cmdline contains the rules of every command line of caprouter: groups of commands,
// the number of arguments, flags with limits, help that fits the terminal, output as text or
// JSON, errors and exit codes. It knows no single command.
package cmdline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/plaintext"
)

// UsageError is an invalid command line, with exit code 2.
type UsageError struct{ error }

func (u UsageError) Unwrap() error { return u.error }

// NewUsageError returns the error as an invalid command line.
func NewUsageError(err error) error { return UsageError{err} }

// UsageErrorf returns a UsageError that refers to the help of the command.
func UsageErrorf(cmd *cobra.Command, format string, args ...any) error {
	return UsageError{fmt.Errorf(format+" (see %s --help)", append(args, cmd.CommandPath())...)}
}

// ArgsBetween returns a check of the number of arguments, from least to most. what describes
// them in the error: "takes one FILE, not 2 arguments".
func ArgsBetween(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		_, name, _ := strings.Cut(cmd.CommandPath(), " ")
		return UsageErrorf(cmd, "%s takes %s, not %s", name, what, plaintext.CountNoun(len(args), "argument"))
	}
}
