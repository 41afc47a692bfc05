package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

// SilentError sets exit code 1 without a message, because the command has printed the
// reason.
type SilentError struct{}

func (SilentError) Error() string { return "" }

// ReportError prints one line per mistake and returns the exit code.
func ReportError(errOut io.Writer, err error) int {
	if _, ok := errors.AsType[strictyaml.Errors](err); ok {
		for _, line := range SplitErrors(err) {
			PrintError(errOut, line)
		}
		return ExitError
	}
	code := ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, new(SilentError)):
		return ExitError
	case errors.As(err, new(UsageError)):
		code = ExitUsage
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	PrintError(errOut, localfile.ExplainPermission(err).Error())
	return code
}

// SplitErrors returns one message per mistake in a file.
func SplitErrors(err error) []string {
	mistakes, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		return []string{err.Error()}
	}
	lines := make([]string, len(mistakes))
	for i := range mistakes {
		lines[i] = mistakes[i].Error()
	}
	return lines
}

// PrintError prints one line, which is wrapped on a terminal.
func PrintError(errOut io.Writer, what string) {
	p := terminal.NewPrinter(terminal.DetectLineOptions(errOut))
	lines := p.WrapText(terminal.Plain, "caprouter: "+what, len(terminal.Indent))
	p.WriteBlock("", 0, strings.ReplaceAll(lines, "\n", "\n"+terminal.Indent))
	fmt.Fprint(errOut, p.String())
}

// Exit codes: 1 is a failure, 2 an invalid command line.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2
)
