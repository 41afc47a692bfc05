package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// printOutput prints v as JSON, or else calls printText.
func printOutput(cmd *cobra.Command, asJSON bool, v any, printText func(out io.Writer) error) error {
	if asJSON {
		return printJSON(cmd.OutOrStdout(), v)
	}
	return printText(cmd.OutOrStdout())
}

// printList prints a list as JSON, or as the text of format, or that there are none of
// what it contains.
func printList[T any](cmd *cobra.Command, asJSON bool, list []T, what string, format func([]T, terminal.Options) string) error {
	return printOutput(cmd, asJSON, list, func(out io.Writer) error {
		text := "no " + what + "\n"
		if len(list) > 0 {
			text = format(list, terminal.DetectOptions(out))
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

func printJSON(out io.Writer, v any) error {
	if err := strictjson.MarshalWrite(out, v); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
