package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/contentkey"
)

// logFlags select the log that a command reads: that of a running router, or of a data
// directory.
type logFlags struct {
	serverFlags
	dataDir string // "" = of a running router
}

func (f *logFlags) register(cmd *cobra.Command) {
	f.serverFlags.register(cmd)
	cmdline.AddJSONFlag(cmd, &f.asJSON)
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "`DIR` whose audit log is read, instead of that of a running router")
	cmdline.MustSucceed(cmd.MarkFlagDirname("data-dir"))
}

// check returns an error if the flags select two logs.
func (f *logFlags) check(cmd *cobra.Command) error {
	if f.dataDir != "" && f.url != "" {
		return cmdline.UsageErrorf(cmd, "--data-dir names files, and --url a router that runs: leave one out")
	}
	return nil
}

// openFiles opens a copy of the audit log of the data directory, which a router may use, and
// its content keys.
func (f *logFlags) openFiles(ctx context.Context) (*audit.Copy, *contentkey.Keyring, error) {
	keys, err := config.ContentKeys(f.dataDir, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	log, err := audit.OpenCopy(ctx, f.dataDir, keys)
	if errors.Is(err, fs.ErrNotExist) {
		err = explainMissingLog(f.dataDir)
	}
	return log, keys, err
}

// hintUnknownAgent prints that the running router has no agent with the id. That is no
// error: there may be records of an agent that has left. It prints nothing if the caller may
// not list the agents, or for a data directory.
func (f *logFlags) hintUnknownAgent(cmd *cobra.Command, id string) {
	if f.dataDir != "" {
		return
	}
	c, err := f.newClient(cmd)
	if err != nil {
		return
	}
	if hint, unknown := c.SuggestAgent(cmd.Context(), id); unknown {
		cmdline.PrintError(cmd.ErrOrStderr(), "there is no agent "+id+" now"+hint)
	}
}
