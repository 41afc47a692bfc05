package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/auth"
)

func newKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "See and rotate the keys that tokens are signed with",
		Args:  onlySubcommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeysListCommand(), newKeysRotateCommand())
	return cmd
}

// keysFlags name the data directory; nothing else of a configuration matters.
type keysFlags struct{ dataDir, config string }

func (f *keysFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "`DIR` with the keys (default caprouter-data)")
	cmd.Flags().StringVar(&f.config, "config", "", "configuration `FILE` that names the data directory (default caprouter.yaml, when there is one)")
	must(cmd.MarkFlagDirname("data-dir"))
	must(cmd.MarkFlagFilename("config", yamlExtensions()...))
}

func (f *keysFlags) load() (app.Config, error) {
	dir, err := dataDirOf(f.dataDir, f.config)
	return app.Config{DataDir: dir}, err
}

func newKeysListCommand() *cobra.Command {
	var flags keysFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys, the youngest first",
		Long: "List the keys of a data directory, the youngest first:\n\n" +
			"  next      published, and signs when everybody has had the time to learn of it\n" +
			"  signing   signs the tokens that are made now\n" +
			"  retired   signs no more; the tokens it signed count until they end\n" +
			"  old       its tokens have ended; it verifies the audit trail\n" +
			"  revoked   its tokens count no more; it verifies the audit trail",
		Example: `  caprouter keys list
  caprouter keys list --data-dir /var/lib/caprouter --json`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.load()
			if err != nil {
				return err
			}
			keys, err := app.ListKeys(cfg)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), struct {
					Keys []auth.KeyInfo `json:"keys"`
				}{keys})
			}
			return printKeys(cmd.OutOrStdout(), keys)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printKeys(out io.Writer, keys []auth.KeyInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tSTATE\tMADE\tSIGNS FROM\tCOUNTS UNTIL")
	for i := range keys {
		k := &keys[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.State, timeText(k.Created), timeText(k.SignsFrom), timeText(k.Until))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printCountsAgain(out, keys)
}

// printCountsAgain names the keys that were revoked in vain.
func printCountsAgain(out io.Writer, keys []auth.KeyInfo) error {
	for i := range keys {
		k := &keys[i]
		if !k.RevocationFailed() {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s is %s, but was revoked on %s: run caprouter keys rotate --revoke again\n",
			k.ID, k.State, timeText(k.Revoked)); err != nil {
			return err
		}
	}
	return nil
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func newKeysRotateCommand() *cobra.Command {
	var flags keysFlags
	var revoke, asJSON bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key, and retire the one that signs",
		Long: "Make a new key in a data directory, and retire the one that signs. A router that runs there follows by\n" +
			"itself, and no request fails: the new key is published at once and signs two minutes later, when agents\n" +
			"have had the time to learn of it; what the old key signed counts until it ends. It is done by the user\n" +
			"whose keys they are, or the router could not read the new one.\n\n" +
			"With --revoke, for a key that somebody else may have: the private halves of all old keys are deleted,\n" +
			"what they signed counts no more, and the new key signs at once. Calls to agents that have not yet\n" +
			"learned of the new key may fail for a minute, and agents that work on tasks cannot deliver them.",
		Example: `  caprouter keys rotate
  caprouter keys rotate --revoke --data-dir /var/lib/caprouter`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.load()
			if err != nil {
				return err
			}
			done, err := app.RotateKeys(cfg, revoke)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), done)
			}
			return printRotation(cmd.OutOrStdout(), done)
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&revoke, "revoke", false, "let nothing count that the old keys signed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printRotation prints a line for each key that matters to what is signed:
//
//	new  3dFmJh…  signs from 2026-01-02T15:06:05Z
//	old  kPrK_q…  signs until then, counts until 2026-01-04T15:11:05Z
func printRotation(out io.Writer, done *auth.Rotation) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	from := "signs from now on"
	if !done.New.SignsFrom.IsZero() {
		from = "signs from " + timeText(done.New.SignsFrom)
	}
	fmt.Fprintf(w, "new\t%s\t%s\n", done.New.ID, from)
	for i := range done.Old {
		k := &done.Old[i]
		what := "counts until " + timeText(k.Until)
		switch k.State {
		case auth.KeySigning:
			what = "signs until then, " + what
		case auth.KeyRevoked:
			what = "revoked: what it signed counts no more"
		}
		fmt.Fprintf(w, "old\t%s\t%s\n", k.ID, what)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printCountsAgain(out, done.Old)
}
