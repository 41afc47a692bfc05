package routerflags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/restclient"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/feedback"
	"github.com/caprouter/caprouter/internal/history"
)

// Log select the log that a command reads: that of a running router, or of a data
// directory.
type Log struct {
	Server
	DataDir string // "" = of a running router
}

// Register adds the flags, and --json.
func (f *Log) Register(cmd *cobra.Command) {
	f.Server.Register(cmd)
	cmdline.AddJSONFlag(cmd, &f.AsJSON)
	cmd.Flags().StringVar(&f.DataDir, "data-dir", "", "`DIR` whose audit log is read, instead of that of a running router")
	cmdline.MustSucceed(cmd.MarkFlagDirname("data-dir"))
}

// Check returns an error if the flags select two logs.
func (f *Log) Check(cmd *cobra.Command) error {
	if f.DataDir != "" && f.URL != "" {
		return cmdline.UsageErrorf(cmd, "--data-dir names files, and --url a router that runs: leave one out")
	}
	return nil
}

// OpenFiles opens a copy of the audit log of the data directory, which a router may use, and
// its content keys.
func (f *Log) OpenFiles(ctx context.Context) (*audit.Copy, *contentkey.Keyring, error) {
	keys, err := config.ContentKeys(f.DataDir, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	log, err := audit.OpenCopy(ctx, f.DataDir, keys)
	if errors.Is(err, fs.ErrNotExist) {
		err = ExplainMissingLog(f.DataDir)
	}
	return log, keys, err
}

// HintUnknownAgent prints that the running router has no agent with the id. That is no
// error: there may be records of an agent that has left. It prints nothing if the caller may
// not list the agents, or for a data directory.
func (f *Log) HintUnknownAgent(cmd *cobra.Command, id string) {
	if f.DataDir != "" {
		return
	}
	c, err := f.NewClient(cmd)
	if err != nil {
		return
	}
	if hint, unknown := c.SuggestAgent(cmd.Context(), id); unknown {
		cmdline.PrintError(cmd.ErrOrStderr(), "there is no agent "+id+" now"+hint)
	}
}

// ExplainMissingLog returns why there is no audit log to check in a data directory.
func ExplainMissingLog(dir string) error {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	why := "name the data directory with --data-dir DIR"
	switch {
	case !exists("."):
		why = "there is no such directory; " + why
	case exists(audit.HeadFile):
		why = "there is a signed head without a log: the log was deleted, or is at a URL: name the configuration with its store.url with --config FILE"
	case exists("store"):
		why = "there is a store without an audit log"
	default:
		why = "there is no store; " + why
	}
	return fmt.Errorf("there is no audit log in %s: %s", dir, why)
}

// ReadDecisions returns the newest decisions that the query selects, newest first.
func (f *Log) ReadDecisions(cmd *cobra.Command, query contract.DecisionQuery) ([]contract.DecisionEntry, error) {
	if f.DataDir == "" {
		c, err := f.NewClient(cmd)
		if err != nil {
			return nil, err
		}
		return c.ListDecisions(cmd.Context(), query)
	}
	log, keys, err := f.OpenFiles(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	verdicts, err := feedback.ReadFiles(cmd.Context(), f.DataDir, keys, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
	if err != nil {
		return nil, err
	}
	return restclient.CollectDecisions(query, func(q contract.DecisionQuery) (*contract.DecisionPage, error) {
		return history.ReadDecisions(cmd.Context(), log, verdicts, q)
	})
}
