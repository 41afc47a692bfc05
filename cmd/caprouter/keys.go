package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/config"
)

func newKeysCommand() *cobra.Command {
	return cmdline.NewGroupCommand(&cobra.Command{
		Use:   "keys",
		Short: "List and rotate the keys that sign tokens",
	}, newKeysListCommand(), newKeysRotateCommand())
}

func newKeysListCommand() *cobra.Command {
	return routerflags.NewDataDirCommand(&cobra.Command{
		Use:   "list",
		Short: "List the keys, newest first",
		Long: "List the keys of a data directory, newest first:\n\n" +
			"  next      published, and signs after agents had time to fetch it\n" +
			"  signing   signs new tokens\n" +
			"  retired   no longer signs; its tokens are valid until they expire\n" +
			"  old       its tokens have expired; it verifies the audit log\n" +
			"  revoked   its tokens are invalid; it verifies the audit log\n\n" +
			"KEY is the key id of an Ed25519 key. ES256 KEY is that of the P-256 key that belongs to it, which signs\n" +
			"the tokens for agents if auth.agent_tokens.alg is ES256. Both are published, rotated and revoked together.",
		Example: `  caprouter keys list
  caprouter keys list --data-dir /var/lib/caprouter --json`,
	}, "the keys", func(_ *cobra.Command, cfg config.Config, printResult routerflags.ResultPrinter) error {
		keys, err := app.ListKeys(cfg)
		if err != nil {
			return err
		}
		list := struct {
			Keys []keyring.Info `json:"keys"`
		}{keys}
		return printResult(list, func(out io.Writer) error { return printKeys(out, keys) })
	})
}

func printKeys(out io.Writer, keys []keyring.Info) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tSTATE\tMADE\tSIGNS FROM\tCOUNTS UNTIL\tES256 KEY")
	for i := range keys {
		k := &keys[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.State, timeText(k.Created), timeText(k.SignsFrom), timeText(k.Until), cmp.Or(k.ES256ID, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printCountsAgain(out, keys)
}

// printCountsAgain warns about revoked keys that are valid again.
func printCountsAgain(out io.Writer, keys []keyring.Info) error {
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
	var revoke bool
	cmd := routerflags.NewDataDirCommand(&cobra.Command{
		Use:   "rotate",
		Short: "Create a new key and retire the signing one",
		Long: "Create a new key in a data directory and retire the signing one. A running router uses it without a\n" +
			"restart and without failed requests: the new key is published at once and signs two minutes later, after\n" +
			"agents had time to fetch it. Tokens of the old key are valid until they expire. Run the command as the\n" +
			"owner of the keys, so that the router can read the new one.\n\n" +
			"Use --revoke if a key may be compromised: the old private keys are deleted, their tokens are invalid,\n" +
			"and the new key signs at once. For a minute, calls to agents without the new key may fail, and agents\n" +
			"cannot deliver results of running tasks.",
		Example: `  caprouter keys rotate
  caprouter keys rotate --revoke --data-dir /var/lib/caprouter`,
	}, "the keys", func(_ *cobra.Command, cfg config.Config, printResult routerflags.ResultPrinter) error {
		done, err := app.RotateKeys(cfg, revoke)
		if err != nil {
			return err
		}
		return printResult(done, func(out io.Writer) error { return printRotation(out, done) })
	})
	cmd.Flags().BoolVar(&revoke, "revoke", false, "invalidate all tokens of the old keys")
	return cmd
}

// printRotation prints one line per key that signs or has signed.
func printRotation(out io.Writer, done *keyring.Rotation) error {
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
		case keyring.StateSigning:
			what = "signs until then, " + what
		case keyring.StateRevoked:
			what = "revoked: what it signed counts no more"
		}
		fmt.Fprintf(w, "old\t%s\t%s\n", k.ID, what)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printCountsAgain(out, done.Old)
}
