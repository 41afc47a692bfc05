package cmdline

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// PrintOutput prints v as JSON, or else calls printText.
func PrintOutput(cmd *cobra.Command, asJSON bool, v any, printText func(out io.Writer) error) error {
	if asJSON {
		return PrintJSON(cmd.OutOrStdout(), v)
	}
	return printText(cmd.OutOrStdout())
}

// PrintList prints a list as JSON, or as the text of format, or that there are none of
// what it contains.
func PrintList[T any](cmd *cobra.Command, asJSON bool, list []T, what string, format func([]T, terminal.Options) string) error {
	return PrintOutput(cmd, asJSON, list, func(out io.Writer) error {
		text := "no " + what + "\n"
		if len(list) > 0 {
			text = format(list, terminal.DetectOptions(out))
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

// PrintJSON prints v as JSON on one line.
func PrintJSON(out io.Writer, v any) error {
	if err := strictjson.MarshalWrite(out, v); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}

// AddJSONFlag adds the flag --json.
func AddJSONFlag(cmd *cobra.Command, set *bool) {
	cmd.Flags().BoolVar(set, "json", false, "print JSON")
}
