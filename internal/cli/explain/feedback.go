package explain

import (
	"strings"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// FormatVerdict returns "misroute, expected quality_agent (code_review): It is a review."
func FormatVerdict(f *contract.Feedback) string {
	text := string(f.Verdict)
	if f.ExpectedNone {
		text += ", expected none"
	}
	if len(f.ExpectedAgents) > 0 {
		text += ", expected " + strings.Join(f.ExpectedAgents, ", ")
	}
	if f.ExpectedIntent != "" {
		text += " (" + f.ExpectedIntent + ")"
	}
	if f.Comment != "" {
		text += ": " + f.Comment
	}
	return terminal.OneLine(text)
}
