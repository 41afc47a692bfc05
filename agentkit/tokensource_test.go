package agentkit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/agentkit"
)

func TestTokenSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	const name = "AGENTKIT_TEST_TOKEN"
	for text, want := range map[string]string{ // "" = an error
		"a.b-c_d":                 "a.b-c_d",
		" \ta.b\r\n":              "a.b",
		"":                        "",
		"\n":                      "",
		"a.b\nc.d":                "",
		"a b":                     "",
		"é":                       "",
		strings.Repeat("a", 8193): "",
	} {
		writeToken(t, file, text)
		t.Setenv(name, text)
		for kind, source := range map[string]agentkit.TokenSource{file: agentkit.TokenFile(file), name: agentkit.TokenEnv(name)} {
			got, err := source(t.Context())
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q in %s: got %q and %v, want %q", text, kind, got, err, want)
			}
			if err != nil && (!strings.Contains(err.Error(), kind) || len(text) > 1 && strings.Contains(err.Error(), text)) {
				t.Errorf("%q in %s: got error %q, want one that names the source and not the text", text, kind, err)
			}
		}
	}
	if _, err := agentkit.TokenFile(file + ".gone")(t.Context()); err == nil {
		t.Error("a missing file: got no error")
	}
}

func writeToken(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
