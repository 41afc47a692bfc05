package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpclient"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/gateway/subprocess"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/mcpsample"
	"github.com/caprouter/caprouter/internal/plaintext"
	"github.com/caprouter/caprouter/internal/strictyaml"
)

func newMCPCommand() *cobra.Command {
	return cmdline.NewGroupCommand(&cobra.Command{
		Use:   "mcp",
		Short: "Check MCP servers, list and call their tools",
		Long: "Read a registry file of MCP servers in any of the usual formats, connect to the servers, and list and\n" +
			"call their tools.",
	}, newMCPListCommand(), newMCPValidateCommand(), newMCPTestCommand(), newMCPCallCommand(), newMCPApproveCommand(), newMCPImportCommand(), newMCPServeCommand())
}

// superviseCommand is the name of the command that package subprocess runs.
const superviseCommand = "mcp-supervise"

// mcpSupervisor returns the command line of the supervisor of MCP servers.
func mcpSupervisor() ([]string, error) {
	self, err := os.Executable()
	return []string{self, superviseCommand}, err
}

func newMCPSuperviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:                superviseCommand + " PROGRAM [ARGUMENT…]",
		Short:              "Run an MCP server and end it with its parent (used by caprouter itself)",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			os.Exit(subprocess.Supervise(cmd.Context(), args))
			return nil
		},
	}
}

func newMCPSampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp-sample " + strings.Join(mcpsample.Names(), "|"),
		Short: "Run a small MCP server on standard input and output",
		Long: "Run one of two small MCP servers on standard input and output, for first steps: weather has the tool\n" +
			"query, system has info and echo.",
		Example:   `  caprouter mcp-sample weather`,
		ValidArgs: mcpsample.Names(),
		Args:      cmdline.ArgsBetween("the name of a server", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(mcpsample.Names(), args[0]) {
				return cmdline.UsageErrorf(cmd, "%q is not one of %s", args[0], strings.Join(mcpsample.Names(), ", "))
			}
			err := mcpsample.Serve(cmd.Context(), args[0], buildVersion())
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
}

// mcpFlags are the flags of commands that connect to MCP servers.
type mcpFlags struct {
	file    string
	timeout time.Duration
	asJSON  bool
}

func (f *mcpFlags) register(cmd *cobra.Command) {
	routerflags.AddMCPFlag(cmd, &f.file)
	f.timeout = time.Minute
	cmdline.AddDurationFlag(cmd, &f.timeout, "timeout", time.Millisecond, 0, "maximum `TIME` to connect and to call")
	cmdline.AddJSONFlag(cmd, &f.asJSON)
}

// path returns the name of the registry file.
func (f *mcpFlags) path() string {
	return cmp.Or(f.file, mcpFileVariable(), config.DefaultMCPFile)
}

// useArgument makes the argument FILE, which may be absent, the registry file.
func (f *mcpFlags) useArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f.file != "" {
		return cmdline.UsageErrorf(cmd, "%s and --mcp %s both name the file: remove one of them", args[0], f.file)
	}
	f.file = args[0]
	return nil
}

// mcpFileVariable returns the registry file that the environment names, "" if none.
func mcpFileVariable() string {
	return strings.TrimPrefix(os.Getenv("MCP_REGISTRY_FILE"), "classpath:")
}

// loadMCPFile loads a registry file.
func loadMCPFile(path string) (*mcpfile.File, error) {
	file, err := mcpfile.Load(path)
	if errors.Is(err, fs.ErrNotExist) && path == mcpFileVariable() {
		return nil, fmt.Errorf("there is no registry file %s of MCP servers, which MCP_REGISTRY_FILE names: correct the variable, or name a file with --mcp", path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no registry file %s of MCP servers: name one with --mcp", path)
	}
	if err != nil {
		return nil, localfile.ShortenError(err)
	}
	return file, nil
}

// checkMCPFile loads a registry file and prints its warnings.
func checkMCPFile(cmd *cobra.Command, path string) (*mcpfile.File, error) {
	file, err := loadMCPFile(path)
	if err != nil {
		return nil, err
	}
	for _, w := range file.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", terminal.OneLine(w))
	}
	return file, nil
}

// withGateway calls fn with a gateway for the servers that selected accepts, of all ids.
// Each server has been tried when fn is called.
func (f *mcpFlags) withGateway(cmd *cobra.Command, selected func(id string, ids []string) bool, fn func(ctx context.Context, g *gateway.Gateway) error) error {
	file, err := loadMCPFile(f.path())
	if err != nil {
		return err
	}
	supervisor, err := mcpSupervisor()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	ids := make([]string, len(file.Servers))
	for i := range file.Servers {
		ids[i] = file.Servers[i].ID
	}
	servers := slices.DeleteFunc(file.Servers, func(s mcpfile.Server) bool { return !selected(s.ID, ids) })
	g, err := gateway.Start(cmd.Context(), servers, gateway.Config{
		Client:         mcpclient.Config{Supervisor: supervisor, Version: buildVersion()},
		ConnectTimeout: f.timeout,
		CallTimeout:    f.timeout,
	})
	if err != nil {
		return err
	}
	g.WaitReady(ctx)
	return errors.Join(fn(ctx, g), g.Close())
}

func newMCPListCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers and their tools",
		Long:  "Connect to all servers of a registry file and list them with their tools.",
		Example: `  caprouter mcp list
  caprouter mcp list --mcp ~/.cursor/mcp.json --json`,
		Args: cmdline.ArgsBetween("no arguments", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.withGateway(cmd, func(string, []string) bool { return true }, func(_ context.Context, g *gateway.Gateway) error {
				servers := g.Servers()
				return cmdline.PrintOutput(cmd, flags.asJSON, servers, func(out io.Writer) error { return printMCPServers(out, servers) })
			})
		},
	}
	flags.register(cmd)
	return cmd
}

func printMCPServers(out io.Writer, servers []gateway.ServerInfo) error {
	if len(servers) == 0 {
		_, err := fmt.Fprintln(out, "no servers")
		return err
	}
	p := terminal.NewPrinter(terminal.DetectOptions(out))
	rows := make([]terminal.Row, len(servers))
	for i := range servers {
		s := &servers[i]
		row := terminal.Row{Cells: []terminal.Cell{
			{Text: s.Name, Style: terminal.Bold},
			{Text: formatMCPStatus(s), Style: mcpStatusStyle(s)},
			{Text: fmt.Sprint(s.ToolCount), Right: true},
			{Text: s.Transport},
		}}
		if s.Error != "" {
			row.Below = append(row.Below, terminal.Cell{Text: s.Error, Style: terminal.Red})
		}
		for _, t := range s.Tools {
			text := t.Action
			switch {
			case t.Error != "":
				text += ": cannot be called: " + t.Error
			case t.Description != "":
				text += ": " + t.Description
			}
			row.Below = append(row.Below, terminal.Cell{Text: text})
		}
		rows[i] = row
	}
	p.WriteRecords([]string{"SERVER", "STATUS", "TOOLS", "TRANSPORT"}, rows)
	_, err := io.WriteString(out, p.String())
	return err
}

// formatMCPStatus returns the state of a server, or else its status.
func formatMCPStatus(s *gateway.ServerInfo) string {
	if s.State != "" {
		return s.State
	}
	return s.Status
}

func mcpStatusStyle(s *gateway.ServerInfo) terminal.Style {
	switch {
	case s.Status == gateway.StatusConnected:
		return terminal.Green
	case s.State == gateway.StateDisabled:
		return terminal.Dim
	}
	return terminal.Red
}

func newMCPValidateCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a registry file of MCP servers and report every mistake with its position",
		Long: "Check a registry file without starting or calling a server. FILE defaults to that of --mcp. Warnings name\n" +
			"literal credentials, ignored keys and environment variables that are not set.",
		Example: `  caprouter mcp validate
  caprouter mcp validate ~/.cursor/mcp.json`,
		Args:              cmdline.ArgsBetween("one FILE", 0, 1),
		ValidArgsFunction: cmdline.CompleteJSON,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.useArgument(cmd, args); err != nil {
				return err
			}
			file, err := checkMCPFile(cmd, flags.path())
			if err != nil {
				return err
			}
			for i := range file.Servers {
				s := &file.Servers[i]
				if _, err := s.Expand(os.LookupEnv); err != nil && !s.Disabled {
					fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s:%d: server %q is blocked: %v\n", file.Name, s.Line, s.ID, err)
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %s, format %s\n", file.Name, plaintext.CountNoun(len(file.Servers), "server"), file.Format)
			return err
		},
	}
	routerflags.AddMCPFlag(cmd, &flags.file)
	return cmd
}

func newMCPTestCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "test [SERVER…]",
		Short: "Connect to servers and report which ones work",
		Long: "Connect to the named servers of a registry file, or to all that are not disabled, and list their tools.\n" +
			"Exit code 1 if one of them does not work or has a tool that cannot be called.",
		Example: `  caprouter mcp test
  caprouter mcp test weather --timeout 5s`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var known []string
			selected := func(id string, ids []string) bool {
				known = ids
				return len(args) == 0 || slices.Contains(args, id)
			}
			return flags.withGateway(cmd, selected, func(_ context.Context, g *gateway.Gateway) error {
				servers := g.Servers()
				for _, name := range args {
					if slices.Contains(known, name) {
						continue
					}
					hint := ": caprouter mcp list lists them"
					if near := strictyaml.Nearest(name, known); near != "" {
						hint = "; did you mean " + near + "?"
					}
					return fmt.Errorf("%s has no server %q%s", flags.path(), name, hint)
				}
				err := cmdline.PrintOutput(cmd, flags.asJSON, servers, func(out io.Writer) error { return printMCPServers(out, servers) })
				if err == nil && slices.ContainsFunc(servers, hasMCPProblem) {
					return cmdline.SilentError{}
				}
				return err
			})
		},
	}
	flags.register(cmd)
	return cmd
}

func hasMCPProblem(s gateway.ServerInfo) bool {
	if s.State == gateway.StateDisabled {
		return false
	}
	return s.Status != gateway.StatusConnected || slices.ContainsFunc(s.Tools, func(t gateway.Tool) bool { return t.Error != "" })
}
