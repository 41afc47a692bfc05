package testkit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caprouter/caprouter/internal/testkit"
)

func TestShared(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"shared/corpora", "module/deep/package"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"module/go.mod", "shared/corpora/words.txt"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(root, "module", "deep", "package"))

	if _, err := os.Stat(testkit.Shared(t, "corpora", "words.txt")); err != nil {
		t.Errorf("path of the test data: %v", err)
	}
	skipped := true
	t.Run("absent", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		testkit.Shared(t, "corpora", "none.txt")
	})
	if !skipped {
		t.Error("got a path of missing data, want the test skipped")
	}
}
