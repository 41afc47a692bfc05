package filekind_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/filekind"
)

func TestOf_RecognizesExamples(t *testing.T) {
	for file, want := range map[string]filekind.Kind{
		"../../examples/caprouter.yaml":    filekind.Config,
		"../../examples/capabilities.yaml": filekind.Registry,
		"../demo/registry.yaml":            filekind.Registry,
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := filekind.Of(data); got != want {
			t.Errorf("%s: got kind %d, want %d", file, got, want)
		}
	}
	for text, want := range map[string]filekind.Kind{
		"":                                     filekind.Unknown,
		"hello: world\n":                       filekind.Unknown,
		"clients: {}\nlisten: x\n":             filekind.Unknown, // both kinds are equally likely
		"clients: {}\nrouting: {}\nlisten: x":  filekind.Registry,
		"# cases: no key\nlisten: x\n":         filekind.Config,
		"cases:\n  - input: clients\n":         filekind.Cases,
		"{\n\t\"mcpServers\": {\"a\": {}}\n}":  filekind.Servers,
		`{"version": "1.0", "servers": []}`:    filekind.Servers,
		`{"clients": {"a": {}}, "routing": 1}`: filekind.Registry,

		// Only keys of the outermost object count: the others have names that the operator chose.
		`{"inputt": "hi", "expect": {"agents": ["x"]}}` + "\n" + `{"input": "x", "expect": {"agents": ["y"]}}`: filekind.Unknown,
		`{"input": "hi", "expect": {"agents": ["x"]}` + "\n" + `{"input": "x", "expect": {"agents": ["y"]}}`:   filekind.Unknown,
		`{"input": "hi", "expect": {"agents": ["x"]}}}` + "\n" + `{"input": "x", "expect": {"agents": []}}`:    filekind.Unknown,
		`{"mcpServers": {"audit": {"comand": "x"}, "tickets": {"command": "y"}}}`:                              filekind.Servers,
		`{"servers": [{"name": "audit", "env": {"store": "x", "llm": "}"}}]}`:                                  filekind.Servers,
		`{"cases": [{"input": "\"clients\": {", "expect": {"agents": ["x"], "routing": 1}}]}`:                  filekind.Cases,
		"{\"listen: 1,\n\"clients\": {}, \"routing\": {}}":                                                     filekind.Registry, // a missing quote
	} {
		if got := filekind.Of([]byte(text)); got != want {
			t.Errorf("%q: got kind %d, want %d", text, got, want)
		}
	}
}

func TestExplain_KeepsErrorsOfRightKind(t *testing.T) {
	broken := errors.New("broken")
	for text, want := range map[string]string{
		"clients: {}\n": "file.yaml: is a capability registry, not a configuration: pass it as --registry file.yaml",
		"listen: 1\n":   "broken",
		"x: 1\n":        "broken",
	} {
		if got := filekind.Explain(broken, filekind.Config, "file.yaml", []byte(text)); !strings.HasPrefix(got.Error(), want) {
			t.Errorf("%q: got error %q, want %q", text, got, want)
		}
	}
	if got := filekind.Explain(nil, filekind.Config, "file.yaml", []byte("clients: {}\n")); got != nil {
		t.Errorf("got %v without an error, want nil", got)
	}
}
