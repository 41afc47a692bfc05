package goldenreport

import (
	"fmt"
	"io"
	"strings"

	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/cli/explain"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/plaintext"
)

// PrintDiff prints the cases that two registries route differently.
func PrintDiff(out io.Writer, d *golden.Diff) error {
	var b strings.Builder
	for _, rule := range d.Rules {
		fmt.Fprintf(&b, "rule     %s\n", terminal.OneLine(rule))
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		fmt.Fprintf(&b, "changed  %s: %s\n", terminal.OneLine(c.ID), strings.Join(c.What, ", "))
		const inset = "         "
		fmt.Fprintf(&b, "%s%s\n", inset, terminal.Truncate(terminal.OneLine(c.Input), terminal.DefaultWidth-len(inset)))
		for _, why := range c.Why {
			fmt.Fprintf(&b, "%s%s\n", inset, terminal.OneLine(why))
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s: %d routed differently (A %s, B %s)\n", plaintext.CountNoun(d.Cases, "case"), len(d.Changes), explain.ShortenVersion(d.A), explain.ShortenVersion(d.B))
	_, err := io.WriteString(out, b.String())
	return err
}
