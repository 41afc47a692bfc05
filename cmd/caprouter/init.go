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

// What init writes. The configuration takes its values from the defaults of the
// program, so that it says what holds without it.
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
			"sample agents, into DIR or the current directory. Files that are there are left alone: then init\n" +
			"writes nothing.",
		Example: `  caprouter init
  caprouter init my-router && cd my-router`,
		Args: takes("one DIR", 0, 1),
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
	files := []starterFile{
		{filepath.Join(dir, app.DefaultConfigFile), config},
		{filepath.Join(dir, app.DefaultRegistryFile), starterRegistry},
	}
	if err := writeNew(files); err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintf(out, "wrote %s\n", f.path)
	}
	printNextSteps(out, dir, cfg.LLM.APIKeyEnv)
	return nil
}

// starterDefaults are the defaults, with the model named that an empty one means.
func starterDefaults() app.Config {
	cfg := app.DefaultConfig()
	cfg.LLM.Model = cmp.Or(cfg.LLM.Model, llm.DefaultModel)
	return cfg
}

func printNextSteps(out io.Writer, dir, keyEnv string) {
	fmt.Fprintln(out, "\nNext:")
	steps := [][2]string{
		{"caprouter validate " + app.DefaultRegistryFile, "after every change of the registry"},
		{`caprouter route "review this python code" --dry-run --explain`, "see a decision; nothing is sent"},
		{"export " + keyEnv + "=…", "let a model classify; without it the embedded classifier does"},
		{"caprouter doctor", "check all of it, the model included"},
		{"caprouter serve", "run the router"},
	}
	if dir != "." {
		steps = append([][2]string{{"cd " + forShell(dir), ""}}, steps...)
	}
	for _, s := range steps {
		if s[1] == "" {
			fmt.Fprintf(out, "  %s\n", s[0])
			continue
		}
		fmt.Fprintf(out, "  %-63s # %s\n", s[0], s[1])
	}
}

// forShell writes a path so that a shell takes it as one word and cd not as an
// option.
func forShell(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	isPlain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/", r) }
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool { return !isPlain(r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// writeNew writes all of the files or none, and none when one is there already.
// Each appears complete: it is written under another name first.
func writeNew(files []starterFile) error {
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return fmt.Errorf("%s is there already: move it away, or name another directory: caprouter init DIR", f.path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return withoutVerb(err)
		}
	}
	for i, f := range files {
		if err := writeComplete(f); err != nil {
			for _, written := range files[:i] {
				err = errors.Join(err, os.Remove(written.path))
			}
			return withoutVerb(err)
		}
	}
	return nil
}

// renderConfig is caprouter.yaml with the values of cfg.
func renderConfig(cfg *app.Config) ([]byte, error) {
	t, err := template.New(app.DefaultConfigFile).Funcs(template.FuncMap{"yaml": yamlValue}).Parse(starterConfig)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, cfg)
	return b.Bytes(), err
}

// plainWord is text that YAML reads as itself without quotes. What any version of
// YAML takes for something else is not among it.
var plainWord = regexp.MustCompile(`^(\./|/)?[a-zA-Z][a-zA-Z0-9_./-]*$`)

// yamlValue is a value of the configuration in YAML, of which JSON is a part.
func yamlValue(v any) (string, error) {
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.String && plainWord.MatchString(r.String()):
		switch strings.ToLower(r.String()) {
		case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		default:
			return r.String(), nil
		}
	case r.Kind() == reflect.Slice && r.Len() == 0:
		return "[]", nil // null is no list
	case r.Type() == reflect.TypeFor[app.StringList]() && r.Len() == 1:
		return yamlValue(r.Index(0).Interface())
	}
	data, err := strictjson.Marshal(v)
	return string(data), err
}
