package cmdline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func TestReportError(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code int
		want string
	}{
		{"no error", nil, ExitOK, ""},
		{"error", errors.New("it broke"), ExitError, "caprouter: it broke\n"},
		{"error with several lines", errors.Join(errors.New("one"), errors.New("two")), ExitError, "caprouter: one; two\n"},
		{"error with an escape sequence", errors.New("\x1b[31mred"), ExitError, "caprouter: \ufffd[31mred\n"},
		{"API error", &contract.Error{Code: contract.CodeForbidden, Message: "no"}, ExitError, "caprouter: forbidden: no\n"},
		{"usage error", fmt.Errorf("while: %w", UsageError{errors.New("what?")}), ExitUsage, "caprouter: while: what?\n"},
		{"already reported", fmt.Errorf("while: %w", SilentError{}), ExitError, ""},
		{"interrupted", fmt.Errorf("while: %w", context.Canceled), ExitError, "caprouter: interrupted\n"},
		{
			"errors of a file",
			fmt.Errorf("load: %w", strictyaml.Errors{{File: "f", Line: 1, Column: 2, Detail: "a"}, {File: "f", Line: 3, Column: 4, Detail: "b"}}),
			ExitError, "caprouter: f:1:2: a\ncaprouter: f:3:4: b\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if got := ReportError(&out, tt.err); got != tt.code {
				t.Errorf("got exit code %d, want %d", got, tt.code)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
