package routerflags

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/config"
)

// DataDir are the flags of commands that need only the data directory.
type DataDir struct{ dataDir, config string }

func (f *DataDir) register(cmd *cobra.Command, content string) {
	AddConfigFlag(cmd, &f.config)
	addDataDirFlag(cmd, &f.dataDir, content)
}

// LoadConfig does not validate the configuration, because mistakes in other keys must
// not prevent a check. With --data-dir it ignores the configuration.
func (f *DataDir) LoadConfig() (config.Config, error) {
	if f.dataDir != "" {
		return config.Config{DataDir: f.dataDir}, nil
	}
	flags := Config{ConfigFile: f.config}
	return config.Load(flags.ConfigPath(), os.LookupEnv)
}

// NewDataDirCommand completes a command that has no arguments and works on a data
// directory, whose flags are those of DataDir and --json. work calls printResult.
func NewDataDirCommand(
	cmd *cobra.Command, content string, work func(cmd *cobra.Command, cfg config.Config, printResult ResultPrinter) error,
) *cobra.Command {
	var flags DataDir
	var asJSON bool
	cmd.Args = cmdline.ArgsBetween("no arguments", 0, 0)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := flags.LoadConfig()
		if err != nil {
			return err
		}
		return work(cmd, cfg, func(v any, printText func(out io.Writer) error) error {
			return cmdline.PrintOutput(cmd, asJSON, v, printText)
		})
	}
	flags.register(cmd, content)
	cmdline.AddJSONFlag(cmd, &asJSON)
	return cmd
}

// ResultPrinter prints v as JSON, or else calls printText, as the flags of the command
// select.
type ResultPrinter func(v any, printText func(out io.Writer) error) error

func addDataDirFlag(cmd *cobra.Command, dir *string, content string) {
	cmd.Flags().StringVar(dir, "data-dir", "", "`DIR` with "+content+" (default caprouter-data)")
	cmdline.MustSucceed(cmd.MarkFlagDirname("data-dir"))
}
