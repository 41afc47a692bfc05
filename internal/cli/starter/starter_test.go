package starter

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/cli/localfile"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit"
)

// loadRendered writes the configuration with the values of cfg and loads it.
func loadRendered(t *testing.T, cfg *config.Config) config.Config {
	t.Helper()
	data, err := renderConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), config.DefaultFile)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(path, nil)
	if err != nil {
		t.Fatalf("load the file of init: %v\n%s", err, data)
	}
	return got
}

// The file written by init contains the defaults.
func TestInit_WritesDefaults(t *testing.T) {
	want := defaultConfig()
	got := loadRendered(t, &want)
	if err := got.Validate(); err != nil {
		t.Errorf("got %v, want a valid configuration", err)
	}
	if got.LLM.Model != "" {
		t.Errorf("got model %q, want none: another provider would get the name", got.LLM.Model)
	}
	if text, err := renderConfig(&want); err != nil || !strings.Contains(string(text), llm.DefaultModel) {
		t.Errorf("got error %v, want the default model %s to be named\n%s", err, llm.DefaultModel, text)
	}
	if got.SampleAgent != demo.SampleAddress {
		t.Errorf("got sample_agent %q, want %s, as in the registry", got.SampleAgent, demo.SampleAddress)
	}
	got.SampleAgent = ""
	if diff := cmp.Diff(config.Default(), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("configuration (-default +written):\n%s", diff)
	}
}

// Every key is in the file: a configuration with another value than the default for each key is
// loaded without loss.
func TestInit_WritesEveryKey(t *testing.T) {
	want := config.Default()
	changeAll(t, reflect.ValueOf(&want).Elem())
	want.Classifier.Cascade.Accept = "0.75"
	if diff := cmp.Diff(want, loadRendered(t, &want), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("a key that the template lacks keeps its default (-want +got):\n%s", diff)
	}
}

// changeAll sets every field of v to another value.
func changeAll(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			changeAll(t, field)
		}
	case reflect.String:
		v.SetString(`other: "` + v.String() + `" # ü`)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		changeAll(t, v.Elem())
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.25)
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), 2, 2)
		if list.Index(0).Kind() == reflect.Struct {
			changeAll(t, list.Index(0))
			v.Set(list)
			return
		}
		list.Index(0).SetString("a")
		list.Index(1).SetString("@example.com")
		v.Set(list)
	default:
		t.Fatalf("init cannot write keys of kind %s", v.Kind())
	}
}

func TestFormatYAML(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{"gemini-3.5-flash-lite", "gemini-3.5-flash-lite"},
		{"./caprouter-data", "./caprouter-data"},
		{"GEMINI_API_KEY", "GEMINI_API_KEY"},
		{"", `""`},
		{"127.0.0.1:8080", `"127.0.0.1:8080"`},
		{"off", `"off"`},
		{"Yes", `"Yes"`},
		{"null", `"null"`},
		{"1.5", `"1.5"`},
		{"a: b", `"a: b"`},
		{config.AcceptThreshold("auto"), "auto"},
		{config.AcceptThreshold("0.9"), `"0.9"`},
		{config.StringList{"default"}, "default"},
		{config.StringList{"email", "phone"}, `["email","phone"]`},
		{[]string{"default"}, `["default"]`},
		{[]string(nil), "[]"},
		{0, "0"},
		{0.0, "0"},
		{false, "false"},
	}
	for _, tt := range tests {
		if got, err := formatYAML(tt.value); err != nil || got != tt.want {
			t.Errorf("%T %v: got %s, %v, want %s", tt.value, tt.value, got, err, tt.want)
		}
	}
}

// The sample registry has no lint finding, with and without its commented agent, and each of its
// examples is dispatched to its own agent.
func TestInit_ExamplesAreDispatched(t *testing.T) {
	asWritten := string(registryFile)
	uncommented := regexp.MustCompile(`(?m)^  # (billing_agent:|  .*)$`).ReplaceAllString(asWritten, "  $1")
	for name, tt := range map[string]struct {
		text   string
		agents int
	}{
		"as written":  {asWritten, 1},
		"uncommented": {uncommented, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := capabilities.Parse(config.DefaultRegistryFile, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(s.Catalogue.Agents); got != tt.agents {
				t.Errorf("got %d agents, want %d", got, tt.agents)
			}
			if len(s.Fleet.Warnings) > 0 {
				t.Errorf("got warnings %q, want none", s.Fleet.Warnings)
			}
			report, err := lint.Check(t.Context(), s, lint.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				t.Errorf("lint: %s: %s", f.Rule, f.Message)
			}
		})
	}
}

func TestInit_WritesAllOrNothing(t *testing.T) {
	tests := []struct {
		name    string
		present string // an existing file
	}{
		{"existing configuration", config.DefaultFile},
		{"existing registry", config.DefaultRegistryFile},
		{"existing golden cases", CasesFile},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			present := filepath.Join(dir, tt.present)
			if err := os.WriteFile(present, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := defaultConfig()
			written, err := Write(dir, &cfg)
			if err == nil || !strings.HasPrefix(err.Error(), present+" exists: ") {
				t.Errorf("got %v, want an error with the file name", err)
			}
			if len(written) > 0 {
				t.Errorf("got %q written, want none", written)
			}
			testkit.CheckFiles(t, dir, map[string]string{tt.present: "mine"})
		})
	}
}

// If a file cannot be written, the files written before are removed.
func TestWriteNewFiles_RemovesFilesOnError(t *testing.T) {
	dir := t.TempDir()
	err := writeNewFiles([]localfile.File{
		{Path: filepath.Join(dir, "first"), Content: []byte("1")},
		{Path: filepath.Join(dir, strings.Repeat("long", 100)), Content: []byte("2")},
	})
	if err == nil || !strings.Contains(err.Error(), "file name too long") {
		t.Errorf("got %v, want the error of the second file", err)
	}
	testkit.CheckFiles(t, dir, map[string]string{})
}

// If several init commands run at the same time, one writes the files, and the others replace none.
func TestInit_Concurrent(t *testing.T) {
	for range 10 {
		dir := t.TempDir()
		begin := make(chan struct{})
		errs := make([]error, 8)
		cfg := defaultConfig()
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				<-begin
				_, errs[i] = Write(dir, &cfg)
			})
		}
		close(begin)
		wg.Wait()
		written := 0
		for _, err := range errs {
			if err == nil {
				written++
			} else if !strings.Contains(err.Error(), "exists: move it away") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want an error because a file exists", err)
			}
		}
		if written != 1 {
			t.Fatalf("got files written by %d of %d, want one", written, len(errs))
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
			t.Errorf("got %q, want no temporary file", left)
		}
		if _, err := config.Load(filepath.Join(dir, config.DefaultFile), nil); err != nil {
			t.Errorf("configuration: %v", err)
		}
	}
}
