package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
)

// version is set by the linker for releases (-ldflags "-X main.version=…").
var version = ""

// buildVersion returns the version of the linker, or else of the Go toolchain.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		// "(devel)" would be a comment in a User-Agent (RFC 9110 §10.1.5).
		return strings.Trim(info.Main.Version, "()")
	}
	return "devel"
}

func versionLine() string {
	return fmt.Sprintf("caprouter %s %s %s/%s", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}
