package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/cli/routerflags"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// The files that init writes. The template of the configuration contains the defaults
// of the program.
var (
	//go:embed starter/caprouter.yaml.tmpl
	starterConfig string
	//go:embed starter/capabilities.yaml
	starterRegistry []byte
	//go:embed starter/cases.yaml
	starterCases []byte
)

// starterCasesFile is the name of the golden cases that init writes.
const starterCasesFile = "cases.yaml"

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
			cfg, err := starterConfigAt(listen)
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
	content, err := renderConfig(&cfg)
	if err != nil {
		return err
	}
	schemas, err := schemaFiles(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return localfile.ShortenError(err)
	}
	files := []localfile.File{
		{Path: filepath.Join(dir, config.DefaultFile), Content: content},
		{Path: filepath.Join(dir, config.DefaultRegistryFile), Content: bytes.ReplaceAll(starterRegistry, []byte(demo.SampleAddress), []byte(cfg.SampleAgent))},
		{Path: filepath.Join(dir, starterCasesFile), Content: starterCases},
	}
	if err := writeNewFiles(slices.Concat(files, schemas)); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "wrote %s\n", f.Path)
	}
	fmt.Fprintf(out, "wrote %s, which editors use to complete and check these files\n", filepath.Join(dir, schemaDir))
	printNextSteps(out, dir, &cfg)
	return nil
}

// starterDefaults returns the defaults, with the sample agent of the registry.
func starterDefaults() config.Config {
	cfg := config.Default()
	cfg.SampleAgent = demo.SampleAddress
	return cfg
}

// starterConfigAt returns the defaults for a router at another address. The port of the sample
// agent is as far from that of the router as by default.
func starterConfigAt(listen string) (config.Config, error) {
	cfg := starterDefaults()
	if listen == cfg.Listen {
		return cfg, nil
	}
	cfg.Listen = listen
	if err := cfg.Validate(); err != nil {
		return cfg, err
	}
	_, text, _ := net.SplitHostPort(listen)
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return cfg, fmt.Errorf("listen: name a port by its number, which stays the same at each start, not %q", text)
	}
	sample := port + samplePortDistance
	if sample > math.MaxUint16 {
		sample = port - samplePortDistance
	}
	cfg.SampleAgent = net.JoinHostPort("127.0.0.1", strconv.Itoa(sample))
	return cfg, nil
}

// samplePortDistance is the distance of the default ports of router and sample agent, 8080 and
// 9101.
const samplePortDistance = 1021

// starterPrompt is a request that the agent of the registry serves.
const starterPrompt = "How many words are in this text: to be or not to be"

func printNextSteps(out io.Writer, dir string, cfg *config.Config) {
	fmt.Fprintln(out, "\nRun the router, and the agent of the registry:")
	program := programNameIn(dir, os.Args[0])
	if dir != "." {
		fmt.Fprintf(out, "  cd %s\n", quoteForShell(dir))
	}
	fmt.Fprintf(out, "  %s serve\n\nSend a request from another terminal:\n"+
		"  curl -s %s/api/v1/route -H 'Content-Type: application/json' \\\n"+
		"    -d '{\"content\":{\"prompt\":\"%s\"}}'\n\nThen:\n", program, routerflags.LocalURL(cfg), starterPrompt)
	printCommands(out, [][2]string{
		{program + ` route "Count the words: a b c" --dry-run --explain`, "print a decision; nothing is sent"},
		{program + " golden run " + starterCasesFile, "after every change of the registry"},
		{"export " + cfg.LLM.KeyEnv() + "=…", "let a model classify the requests"},
		{program + " doctor", "check everything, the model included"},
	})
}

// printCommands prints commands, each below what it does, so that the lines are short.
func printCommands(out io.Writer, commands [][2]string) {
	for _, c := range commands {
		fmt.Fprintf(out, "  # %s\n  %s\n", c[1], c[0])
	}
}

// programName returns how the user has called this program from the current directory.
func programName() string { return programNameIn(".", os.Args[0]) }

// programNameIn returns how to call the program, which was called as called, in the
// directory dir.
func programNameIn(dir, called string) string {
	switch {
	case strings.Contains(called, "go-build") && dir == ".":
		return "go run ./cmd/caprouter"
	case strings.Contains(called, "go-build") || !strings.ContainsRune(called, filepath.Separator):
		return "caprouter"
	case dir == ".": // perhaps in no directory of PATH
		return quoteForShell(called)
	}
	path, err := filepath.Abs(called)
	if err != nil {
		return "caprouter"
	}
	return quoteForShell(path)
}

// quoteForShell returns a path as one word of a shell that is not taken for an option.
func quoteForShell(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	isPlain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/", r) }
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool { return !isPlain(r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// writeNewFiles writes all files or none. It fails if one of them exists.
func writeNewFiles(files []localfile.File) error {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); err == nil {
			return errInitExists(f.Path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return localfile.ShortenError(err)
		}
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o750); err != nil {
			return localfile.ShortenError(err)
		}
	}
	for i, f := range files {
		if err := localfile.Create(f); err != nil {
			if errors.Is(err, fs.ErrExist) { // created since it was looked for
				err = errInitExists(f.Path)
			}
			for _, written := range files[:i] {
				err = errors.Join(err, os.Remove(written.Path))
			}
			return localfile.ShortenError(err)
		}
	}
	return nil
}

func errInitExists(path string) error {
	return fmt.Errorf("%s exists: move it away, or name another directory: caprouter init DIR", path)
}

// renderConfig returns caprouter.yaml with the values of cfg.
func renderConfig(cfg *config.Config) ([]byte, error) {
	t, err := template.New(config.DefaultFile).Funcs(template.FuncMap{
		"yaml":         formatYAML,
		"defaultModel": func() string { return llm.DefaultModel },
	}).Parse(starterConfig)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, cfg)
	return b.Bytes(), err
}

// plainScalar matches text that needs no quotes in any version of YAML.
var plainScalar = regexp.MustCompile(`^(\./|/)?[a-zA-Z][a-zA-Z0-9_./-]*$`)

// formatYAML encodes a value as YAML, of which JSON is a subset.
func formatYAML(v any) (string, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.String && plainScalar.MatchString(r.String()):
		switch strings.ToLower(r.String()) {
		case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		default:
			return r.String(), nil
		}
	case r.Kind() == reflect.Slice && r.Len() == 0:
		return "[]", nil
	case r.Type() == reflect.TypeFor[config.StringList]() && r.Len() == 1:
		return formatYAML(r.Index(0).Interface())
	}
	data, err := strictjson.Marshal(v)
	return string(data), err
}
