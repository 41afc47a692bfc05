package cmdline

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/terminal"
)

// helpEntry matches an indented line: the name of a command or a flag, if there is one,
// then its description.
var helpEntry = regexp.MustCompile(`^( +(?:\S.*? {2,})?)(\S.*)$`)

// optionalValue matches a flag whose value may be left out, as the library prints it, before
// its description.
var optionalValue = regexp.MustCompile(`^( +--\S+) (\S+)\[="true"\]`)

// FormatHelp returns the help of the command, wrapped to the width of the output.
// Examples are not wrapped, because they are copied.
func FormatHelp(cmd *cobra.Command, opts terminal.Options) string {
	p := terminal.NewPrinter(opts)
	for paragraph := range strings.SplitSeq(cmp.Or(cmd.Long, cmd.Short), "\n\n") {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			for line := range strings.SplitSeq(paragraph, "\n") {
				writeHelpEntry(p, line)
			}
		} else {
			p.WriteParagraph(terminal.Plain, strings.ReplaceAll(paragraph, "\n", " "))
		}
		p.WriteString("\n")
	}
	examples := false
	for line := range strings.Lines(cmd.UsageString()) {
		line = strings.TrimRight(line, " \n")
		if line != "" && !strings.HasPrefix(line, " ") {
			examples = line == "Examples:"
		}
		line = optionalValue.ReplaceAllString(line, "$1[=$2]       ") // as wide as before
		switch {
		case examples:
			p.WriteString(line + "\n")
		case strings.HasPrefix(line, "Use \""):
			p.WriteBlock("", 0, p.WrapText(terminal.Plain, line, 0))
		default:
			writeHelpEntry(p, line)
		}
	}
	return p.String()
}

// writeHelpEntry writes a line of help. The description of an entry is wrapped.
func writeHelpEntry(p *terminal.Printer, line string) {
	if entry := helpEntry.FindStringSubmatch(line); entry != nil {
		column := terminal.TextWidth(entry[1])
		line = entry[1] + strings.ReplaceAll(p.WrapText(terminal.Plain, entry[2], column), "\n", "\n"+strings.Repeat(" ", column))
	}
	p.WriteBlock("", 0, line)
}

// NewHelpCommand returns the command help, which prints the help of another command.
func NewHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if parent, _, err := cmd.Root().Find(args); err == nil {
				for _, c := range parent.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil {
				return UsageErrorf(cmd, "%w", err)
			}
			if len(rest) > 0 {
				return newUnknownCommandError(target, rest[0])
			}
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		},
	}
}
