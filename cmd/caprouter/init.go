package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/starter"
	"github.com/caprouter/caprouter/internal/config"
)

func newInitCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a configuration, a registry and golden cases to start from",
		Long: "Write three files and the directory schemas into DIR or the current directory: caprouter.yaml, with\n" +
			"every key explained; capabilities.yaml, with one agent, which caprouter serve runs; and cases.yaml,\n" +
			"with golden cases.\n" +
			"If one of the files exists, init writes nothing.\n\n" +
			"A second project on the same machine needs another --listen. The agent gets an address of its own as well.",
		Example: `  caprouter init
  caprouter init my-router && cd my-router
  caprouter init second --listen 127.0.0.1:8081`,
		Args: cmdline.ArgsBetween("one DIR", 0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			cfg, err := starter.ConfigAt(listen)
			if err != nil {
				return cmdline.UsageErrorf(cmd, "--%w", err)
			}
			return runInit(cmd.OutOrStdout(), dir, cfg)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", config.Default().Listen, "loopback `HOST:PORT` of the router")
	return cmd
}

func runInit(out io.Writer, dir string, cfg config.Config) error {
	written, err := starter.Write(dir, &cfg)
	if err != nil {
		return err
	}
	for _, path := range written {
		fmt.Fprintf(out, "wrote %s\n", path)
	}
	fmt.Fprintf(out, "wrote %s, which editors use to complete and check these files\n", filepath.Join(dir, starter.SchemaDir))
	printNextSteps(out, dir, &cfg)
	return nil
}

// starterPrompt is a request that the agent of the registry serves.
const starterPrompt = "How many words are in this text: to be or not to be"

func printNextSteps(out io.Writer, dir string, cfg *config.Config) {
	fmt.Fprintln(out, "\nRun the router, and the agent of the registry:")
	program := cmdline.ProgramNameIn(dir, os.Args[0])
	if dir != "." {
		fmt.Fprintf(out, "  cd %s\n", cmdline.QuoteForShell(dir))
	}
	fmt.Fprintf(out, "  %s serve\n\nSend a request from another terminal:\n"+
		"  curl -s %s/api/v1/route -H 'Content-Type: application/json' \\\n"+
		"    -d '{\"content\":{\"prompt\":\"%s\"}}'\n\nThen:\n", program, routerflags.LocalURL(cfg), starterPrompt)
	cmdline.PrintCommands(out, [][2]string{
		{program + ` route "Count the words: a b c" --dry-run --explain`, "print a decision; nothing is sent"},
		{program + " golden run " + starter.CasesFile, "after every change of the registry"},
		{"export " + cfg.LLM.KeyEnv() + "=…", "let a model classify the requests"},
		{program + " doctor", "check everything, the model included"},
	})
}
