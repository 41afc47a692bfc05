package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"text/template"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/caprouter/caprouter/internal/app"
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
)

func newInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a configuration and a sample registry to start from",
		Long: "Write caprouter.yaml, with every key at its default and explained, and capabilities.yaml, with three\n" +
			"sample agents, into DIR or the current directory. If one of the files exists, init writes nothing.",
		Example: `  caprouter init
  caprouter init my-router && cd my-router`,
		Args: argsBetween("one DIR", 0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return runInit(cmd.OutOrStdout(), dir)
		},
	}
}

func runInit(out io.Writer, dir string) error {
	cfg := starterDefaults()
	config, err := renderConfig(&cfg)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return withoutVerb(err)
	}
	files := []fileContent{
		{filepath.Join(dir, app.DefaultConfigFile), config},
		{filepath.Join(dir, app.DefaultRegistryFile), starterRegistry},
	}
	if err := writeNewFiles(files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "wrote %s\n", f.path)
	}
	printNextSteps(out, dir, cfg.LLM.APIKeyEnv)
	return nil
}

// starterDefaults returns the defaults, with the name of the default model.
func starterDefaults() app.Config {
	cfg := app.DefaultConfig()
	cfg.LLM.Model = cmp.Or(cfg.LLM.Model, llm.DefaultModel)
	return cfg
}

func printNextSteps(out io.Writer, dir, keyEnv string) {
	fmt.Fprintln(out, "\nNext:")
	steps := [][2]string{
		{"caprouter validate " + app.DefaultRegistryFile, "after every change of the registry"},
		{`caprouter route "review this python code" --dry-run --explain`, "print a decision; nothing is sent"},
		{"export " + keyEnv + "=…", "classify with a model instead of the lexical classifier"},
		{"caprouter doctor", "check all of it, the model included"},
		{"caprouter serve", "run the router"},
	}
	if dir != "." {
		steps = append([][2]string{{"cd " + quoteForShell(dir), ""}}, steps...)
	}
	for _, s := range steps {
		if s[1] == "" {
			fmt.Fprintf(out, "  %s\n", s[0])
			continue
		}
		fmt.Fprintf(out, "  %-63s # %s\n", s[0], s[1])
	}
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
func writeNewFiles(files []fileContent) error {
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return fmt.Errorf("%s exists: move it away, or name another directory: caprouter init DIR", f.path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return withoutVerb(err)
		}
	}
	for i, f := range files {
		if err := writeAtomically(f); err != nil {
			for _, written := range files[:i] {
				err = errors.Join(err, os.Remove(written.path))
			}
			return withoutVerb(err)
		}
	}
	return nil
}

// renderConfig returns caprouter.yaml with the values of cfg.
func renderConfig(cfg *app.Config) ([]byte, error) {
	t, err := template.New(app.DefaultConfigFile).Funcs(template.FuncMap{"yaml": formatYAML}).Parse(starterConfig)
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
	case r.Type() == reflect.TypeFor[app.StringList]() && r.Len() == 1:
		return formatYAML(r.Index(0).Interface())
	}
	data, err := strictjson.Marshal(v)
	return string(data), err
}
