package cmdline

import (
	"os"
	"path/filepath"
	"testing"
)

func TestQuoteForShell(t *testing.T) {
	for path, want := range map[string]string{
		"router": "router", "a/b.c_d-e": "a/b.c_d-e", "-x": "./-x", "": "''",
		"my dir": "'my dir'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "- x": "'./- x'", "café": "café",
	} {
		if got := QuoteForShell(path); got != want {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

// The commands that init prints work in its directory, also if the program was called
// by a relative path.
func TestProgramNameIn(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, called, want string }{
		{".", "caprouter", "caprouter"},
		{".", "./caprouter", "./caprouter"},
		{".", "/tmp/go-build1/b001/exe/caprouter", "go run ./cmd/caprouter"},
		{"sub", "caprouter", "caprouter"},
		{"sub", "./caprouter", filepath.Join(wd, "caprouter")},
		{"sub", "/opt/caprouter", "/opt/caprouter"},
		{"sub", "/tmp/go-build1/b001/exe/caprouter", "caprouter"},
	} {
		if got := ProgramNameIn(tt.dir, tt.called); got != tt.want {
			t.Errorf("%s in %s: got %s, want %s", tt.called, tt.dir, got, tt.want)
		}
	}
}
