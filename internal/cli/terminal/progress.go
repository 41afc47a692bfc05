package terminal

import (
	"fmt"
	"io"
)

// eraseLine moves the cursor to the start of the line and erases it.
const eraseLine = "\r\x1b[K"

// ProgressLine shows progress on a terminal, and nothing otherwise.
type ProgressLine struct {
	Out      io.Writer
	Terminal bool // Out is a terminal
}

// NewProgressLine returns a ProgressLine on out.
func NewProgressLine(out io.Writer) *ProgressLine {
	return &ProgressLine{Out: out, Terminal: IsTerminal(out)}
}

// PrintProgress replaces the line by the stage and its progress: "cases 3/10".
func (s *ProgressLine) PrintProgress(stage string, done, total int) {
	s.PrintLine(fmt.Sprintf("%s %d/%d", stage, done, total))
}

// PrintLine replaces the line by the text.
func (s *ProgressLine) PrintLine(text string) {
	if s.Terminal {
		fmt.Fprint(s.Out, eraseLine+Indent+text)
	}
}

// Clear erases the line.
func (s *ProgressLine) Clear() {
	if s.Terminal {
		fmt.Fprint(s.Out, eraseLine)
	}
}
