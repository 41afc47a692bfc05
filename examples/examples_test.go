package examples_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/lint"
)

func noEnv(string) (string, bool) { return "", false }

func TestRegistry_HasNoFindings(t *testing.T) {
	s, err := capabilities.Load("capabilities.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Fleet.Warnings) > 0 {
		t.Errorf("got warnings %q, want none", s.Fleet.Warnings)
	}
	report, err := lint.Check(t.Context(), s, lint.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("got finding %s: %s", f.Rule, f.Message)
	}
}

func TestRegistry_ContainsSampleAgent(t *testing.T) {
	s, err := capabilities.Load("capabilities.yaml")
	if err != nil {
		t.Fatal(err)
	}
	agent, source := s.Entry("word_counter"), readFile(t, "agent/main.go")
	if agent == nil {
		t.Fatal("got no agent word_counter")
	}
	address := strings.TrimSuffix(strings.TrimPrefix(agent.Endpoint.URL, "http://"), "/")
	for _, want := range []string{`"word_counter"`, `"` + address + `"`} {
		if !strings.Contains(source, want) {
			t.Errorf("agent/main.go: got no %s", want)
		}
	}
}

func TestConfiguration_ContainsDefaults(t *testing.T) {
	got, err := config.Load("caprouter.yaml", noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("invalid configuration: %v", err)
	}
	if diff := cmp.Diff(config.Default(), got); diff != "" {
		t.Errorf("configuration (-default +file):\n%s", diff)
	}
}

// Loading does not detect a missing key, because its value is the default.
func TestConfiguration_ContainsEveryKey(t *testing.T) {
	text := readFile(t, "caprouter.yaml")
	for _, key := range keys(reflect.TypeFor[config.Config](), "") {
		body, indent := text+"\n\n", "\n"
		for name := range strings.SplitSeq(key, ".") {
			_, rest, found := strings.Cut(body, indent+name+":")
			if !found {
				t.Errorf("caprouter.yaml: got no %s", key)
				break
			}
			if indent == "\n" {
				rest, _, _ = strings.Cut(rest, "\n\n") // sections are separated by empty lines
			}
			body, indent = rest, indent+"  "
		}
	}
}

// keys returns the dotted names of the YAML keys of a struct, in order. A map counts as one key,
// because its entries have user-defined names.
func keys(t reflect.Type, prefix string) []string {
	var list []string
	for field := range t.Fields() {
		if field.Tag.Get("yaml") == "-" {
			continue
		}
		name := prefix + field.Tag.Get("yaml")
		if field.Type.Kind() == reflect.Struct {
			list = append(list, keys(field.Type, name+".")...)
			continue
		}
		list = append(list, name)
	}
	return list
}
