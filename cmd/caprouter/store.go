package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/store/repair"
)

func newStoreCommand() *cobra.Command {
	return cmdline.NewGroupCommand(&cobra.Command{
		Use:   "store",
		Short: "Repair damaged files of the store",
	}, newStoreRepairCommand())
}

func newStoreRepairCommand() *cobra.Command {
	var dryRun bool
	cmd := routerflags.NewDataDirCommand(&cobra.Command{
		Use:   "repair",
		Short: "Remove damaged records from the files of the store",
		Long: "Check all files of the store in a data directory, remove what cannot be read, and keep the other\n" +
			"records. The damaged files are kept as store/damaged/*.damaged. The router must be stopped. A router\n" +
			"that starts removes a damaged end by itself; if it finds other damage, it does not start.\n\n" +
			"Exit code 1 if the repair fails, or, with --dry-run, if there is damage.",
		Example: `  caprouter store repair --dry-run
  caprouter store repair --data-dir /var/lib/caprouter`,
	}, "the store", func(cmd *cobra.Command, cfg config.Config, printResult routerflags.ResultPrinter) error {
		streams, err := store.Repair(cmd.Context(), store.RepairConfig{Dir: cfg.DataDir, DryRun: dryRun})
		if errors.Is(err, fs.ErrNotExist) && streams == nil {
			return fmt.Errorf("there is no store in %s: name the data directory with --data-dir DIR", cfg.DataDir)
		}
		if err != nil {
			return err
		}
		list := struct {
			Streams []repair.Stream `json:"streams"`
		}{streams}
		damaged := 0
		for i := range streams {
			damaged += len(streams[i].Damage)
		}
		err = printResult(list, func(out io.Writer) error { return printRepair(out, streams, damaged, dryRun) })
		if err == nil && dryRun && damaged > 0 {
			return cmdline.SilentError{}
		}
		return err
	})
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the damage and change nothing")
	return cmd
}

// printRepair prints one line per stream and per damaged place, then a summary.
func printRepair(out io.Writer, streams []repair.Stream, damaged int, dryRun bool) error {
	action := "removed"
	if dryRun {
		action = "would remove"
	}
	for i := range streams {
		s := &streams[i]
		fmt.Fprintf(out, "%s: %s, %d bytes, %s\n", terminal.OneLine(s.Name), plaintext.CountNoun(s.Blocks, "file"), s.Bytes, plaintext.CountNoun(len(s.Damage), "damaged place"))
		for j := range s.Damage {
			d := &s.Damage[j]
			fmt.Fprintf(out, "  %s: %s %s\n", terminal.OneLine(d.File), action, d.Damage)
			if d.Kept != "" {
				fmt.Fprintf(out, "  kept %s\n", terminal.OneLine(d.Kept))
			}
		}
	}
	verdict := "no damage"
	switch {
	case damaged > 0 && dryRun:
		verdict = plaintext.CountNoun(damaged, "damaged place") + ", nothing was changed"
	case damaged > 0:
		verdict = plaintext.CountNoun(damaged, "damaged place") + " repaired"
	}
	_, err := fmt.Fprintln(out, verdict)
	return err
}
