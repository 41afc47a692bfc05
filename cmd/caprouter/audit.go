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
	"github.com/caprouter/caprouter/internal/auth"
)

func newAuditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check the record of all decisions",
		Args:  onlySubcommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerifyCommand())
	return cmd
}

func newAuditVerifyCommand() *cobra.Command {
	var dataDir, config string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing in the audit trail was changed",
		Long: "Check that nothing in the audit trail of a data directory was altered, deleted, reordered or cut off,\n" +
			"and that what was erased was erased on record. No router is needed, and one that runs is not disturbed:\n" +
			"a copy is read, and nothing in the data directory is written to. A line for each thing that is wrong.\n\n" +
			"Exit code 1 when something is.",
		Example: `  caprouter audit verify
  caprouter audit verify --data-dir /var/lib/caprouter --json`,
		Args: takes("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDirOf(dataDir, config)
			if err != nil {
				return err
			}
			err = auditVerify(cmd, dir, asJSON)
			if errors.Is(err, fs.ErrNotExist) {
				return noTrail(dir, storeURLOf(dataDir, config))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "`DIR` with the trail and the key its head is signed with (default caprouter-data)")
	cmd.Flags().StringVar(&config, "config", "", "configuration `FILE` that names the data directory (default caprouter.yaml, when there is one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	must(cmd.MarkFlagDirname("data-dir"))
	must(cmd.MarkFlagFilename("config", yamlExtensions()...))
	return cmd
}

// dataDirOf is the directory that was named, or else the configuration's: a
// mistake in a file that does not matter keeps nobody from checking.
func dataDirOf(dataDir, config string) (string, error) {
	if dataDir != "" {
		return dataDir, nil
	}
	flags := configFlags{config: config}
	cfg, err := app.LoadConfig(flags.path(), os.LookupEnv)
	return cfg.DataDir, err
}

// storeURLOf is where the configuration has the store, when it is not in the data
// directory. Who names a directory means that one, whatever the configuration says.
func storeURLOf(dataDir, config string) string {
	if dataDir != "" {
		return ""
	}
	flags := configFlags{config: config}
	cfg, err := app.LoadConfig(flags.path(), os.LookupEnv)
	if err != nil || cfg.Store.URL == "" {
		return ""
	}
	u, err := url.Parse(cfg.Store.URL)
	if err != nil {
		return "a URL"
	}
	return u.Redacted()
}

// noTrail says why there is nothing to check.
func noTrail(dir, storeURL string) error {
	if storeURL != "" {
		return fmt.Errorf("the audit trail is at %s, where store.url keeps it: only one in a data directory can be checked", storeURL)
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	why := "name the data directory with --data-dir DIR"
	switch {
	case !exists("."):
		why = "there is no such directory; " + why
	case exists(audit.HeadFile):
		why = "the signed head of one is there, and its log is not: it was deleted, or it is at a URL (store.url) and cannot be checked"
	case exists("store"):
		why = "what a router keeps is there, and no trail is among it"
	default:
		why = "no router has kept anything there; " + why
	}
	return fmt.Errorf("there is no audit trail in %s: %s", dir, why)
}

func auditVerify(cmd *cobra.Command, dir string, asJSON bool) error {
	signer, err := openAuditSigner(dir)
	if err != nil {
		return err
	}
	shown := showStages(cmd.ErrOrStderr())
	report, err := audit.Verify(cmd.Context(), audit.VerifyConfig{
		DataDir: dir,
		Signer:  signer,
		Progress: func(done, total uint64) {
			shown.print("messages", int(done), int(total))
		},
	})
	shown.clear()
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		err = printTrail(cmd.OutOrStdout(), dir, report)
	}
	if err != nil || report.OK() {
		return err
	}
	return silentError{}
}

// trailSigner reads the key of the data directory. Where there is none, none is
// made: no head is signed with a key of the moment, and the report says so.
func openAuditSigner(dir string) (*auth.Signer, error) {
	if _, err := os.Stat(filepath.Join(dir, auth.KeyFile)); errors.Is(err, fs.ErrNotExist) {
		return auth.NewSigner()
	}
	return auth.OpenSigner(dir)
}

// printTrail prints what is wrong, a line each, and below it what was looked at:
//
//	deleted batch 7 record 31 (2026-01-02T15:04:05Z): …
//
//	trail     caprouter-data
//	records   1 to 1204 in 96 batches
//	time      2026-01-02T09:00:00Z to 2026-01-02T17:30:11Z
//	contents  1180 whole, 20 erased, 4 expired
//	verdict   1 problem
func printTrail(out io.Writer, dir string, r *audit.Report) error {
	for i := range r.Problems {
		fmt.Fprintln(out, oneLine(r.Problems[i].String()))
	}
	if !r.OK() {
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "trail\t%s\n", oneLine(dir))
	fmt.Fprintf(w, "records\t%s\n", recordsText(r))
	if !r.From.IsZero() {
		fmt.Fprintf(w, "time\t%s to %s\n", r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(w, "contents\t%d whole, %d erased, %d expired\n", r.Contents, r.ErasedContents, r.ExpiredContents)
	if r.Unsigned > 0 {
		fmt.Fprintf(w, "unsigned\t%s after the signed head\n", batches(r.Unsigned))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", oneLine(note))
	}
	verdict := "nothing is wrong"
	if !r.OK() {
		verdict = count(len(r.Problems), "problem")
	}
	fmt.Fprintf(w, "verdict\t%s\n", verdict)
	return w.Flush()
}

func recordsText(r *audit.Report) string {
	if r.Records == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d in %s", r.First, r.Last, batches(r.Batches))
}

func batches(n uint64) string {
	if n == 1 {
		return "1 batch"
	}
	return fmt.Sprintf("%d batches", n)
}
