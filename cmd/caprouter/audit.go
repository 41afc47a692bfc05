package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/store"
)

func newAuditCommand() *cobra.Command {
	return cmdline.NewGroupCommand(&cobra.Command{
		Use:   "audit",
		Short: "List and verify the audit log",
	}, newAuditListCommand(), newAuditVerifyCommand())
}

func newAuditVerifyCommand() *cobra.Command {
	return routerflags.NewDataDirCommand(&cobra.Command{
		Use:   "verify",
		Short: "Verify the hash chain of the audit log",
		Long: "Verify that no record in the audit log of a data directory was altered, deleted, reordered or cut off,\n" +
			"and that erasures are recorded. The command reads a copy, so that a router may be running, and writes\n" +
			"nothing into the data directory. It prints one line per problem.\n\n" +
			"If the configuration has a store.url, it verifies the chains of all replicas in the store there, with the\n" +
			"keys in the data directory.\n\n" +
			"Exit code 1 if there are problems.",
		Example: `  caprouter audit verify
  caprouter audit verify --data-dir /var/lib/caprouter --json`,
	}, "the audit log and the key that signs its head", func(cmd *cobra.Command, cfg config.Config, printResult routerflags.ResultPrinter) error {
		if cfg.Store.URL != "" {
			return verifyStoreURL(cmd, &cfg, printResult)
		}
		err := auditVerify(cmd, cfg.DataDir, printResult)
		if errors.Is(err, fs.ErrNotExist) {
			return routerflags.ExplainMissingLog(cfg.DataDir)
		}
		return err
	})
}

// verifyStoreURL verifies the chains of all replicas in the store at a URL.
func verifyStoreURL(cmd *cobra.Command, cfg *config.Config, printResult routerflags.ResultPrinter) error {
	signer, err := openAuditSigner(cfg.DataDir)
	if err != nil {
		return err
	}
	at := redactedURL(cfg.Store.URL)
	shown := terminal.NewProgressLine(cmd.ErrOrStderr())
	report, err := app.VerifyStoreURL(cmd.Context(), cfg, signer, func(done, total uint64) {
		shown.PrintProgress("messages", int(done), int(total))
	})
	shown.Clear()
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no audit log at %s (store.url)", at)
	}
	if err != nil {
		return err
	}
	err = printResult(report, func(out io.Writer) error {
		for i, r := range report.Chains {
			if i > 0 {
				fmt.Fprintln(out)
			}
			if err := printAuditReport(out, at+", chain "+r.Writer, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || report.OK() {
		return err
	}
	return cmdline.SilentError{}
}

// redactedURL returns a URL without its password.
func redactedURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "a URL"
	}
	return u.Redacted()
}

func auditVerify(cmd *cobra.Command, dir string, printResult routerflags.ResultPrinter) error {
	signer, err := openAuditSigner(dir)
	if err != nil {
		return err
	}
	shown := terminal.NewProgressLine(cmd.ErrOrStderr())
	report, err := audit.Verify(cmd.Context(), audit.VerifyConfig{
		DataDir: dir,
		Signer:  signer,
		Progress: func(done, total uint64) {
			shown.PrintProgress("messages", int(done), int(total))
		},
	})
	shown.Clear()
	if err != nil {
		return err
	}
	err = printResult(report, func(out io.Writer) error { return printAuditReport(out, dir, report) })
	if err != nil || report.OK() {
		return err
	}
	return cmdline.SilentError{}
}

// openAuditSigner opens the key of the data directory. If there is none, it returns a
// new key, which verifies no signature, so that the report contains the problem.
func openAuditSigner(dir string) (*keyring.Ring, error) {
	if _, err := os.Stat(filepath.Join(dir, keyring.File)); errors.Is(err, fs.ErrNotExist) {
		return keyring.New()
	}
	return keyring.Open(dir)
}

// printAuditReport prints one line per problem, then a summary.
func printAuditReport(out io.Writer, dir string, r *audit.Report) error {
	for i := range r.Problems {
		fmt.Fprintln(out, terminal.OneLine(r.Problems[i].String()))
	}
	if !r.OK() {
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "log\t%s\n", terminal.OneLine(dir))
	fmt.Fprintf(w, "records\t%s\n", formatRecords(r))
	if !r.From.IsZero() {
		fmt.Fprintf(w, "time\t%s to %s\n", r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339))
	}
	evicted := ""
	if r.EvictedContents > 0 {
		evicted = fmt.Sprintf(", %d evicted to make room", r.EvictedContents)
	}
	fmt.Fprintf(w, "contents\t%d whole, %d erased, %d expired%s\n", r.Contents, r.ErasedContents, r.ExpiredContents, evicted)
	if r.Unsigned > 0 {
		fmt.Fprintf(w, "unsigned\t%s after the signed head\n", formatBatches(r.Unsigned))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", terminal.OneLine(note))
	}
	verdict := "no problems"
	if !r.OK() {
		verdict = plaintext.CountNoun(len(r.Problems), "problem")
	}
	fmt.Fprintf(w, "verdict\t%s\n", verdict)
	return w.Flush()
}

func formatRecords(r *audit.Report) string {
	if r.Records == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d in %s", r.First, r.Last, formatBatches(r.Batches))
}

func formatBatches(n uint64) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
}
