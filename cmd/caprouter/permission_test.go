//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the id of an ordinary user, for a test that runs as root.
const nobody = 65534

// caprouter runs as an ordinary user.
func TestPermission_ErrorNamesDirectoryAndFix(t *testing.T) {
	dir, err := os.MkdirTemp("", "caprouter-permission-") //nolint:usetesting // t.TempDir is below a directory that only its owner may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, closed := range []string{"data", "readonly"} {
			_ = os.Chmod(filepath.Join(dir, closed), 0o700) // so that it can be removed
		}
		_ = os.RemoveAll(dir)
	})
	binary := copyExecutable(t, dir)
	for _, d := range []struct {
		name string
		mode os.FileMode
	}{{"data", 0}, {"readonly", 0o555}, {"open", 0o755}} {
		if err := os.Mkdir(filepath.Join(dir, d.name), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"agent-signing.key", "capabilities.yaml"} {
			if err := os.WriteFile(filepath.Join(dir, d.name, name), []byte("clients: {}\n"), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, d.name), d.mode); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 { // the user owns the directories, but not the files in them
			if err := os.Chown(filepath.Join(dir, d.name), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the ordinary user must be able to enter it
		t.Fatal(err)
	}
	tests := []struct {
		name, args string
		want       []string
	}{
		{"data directory", "token --sub a --data-dir data", []string{"may not enter the directory data; ", "change its owner or mode"}},
		{"signing key", "keys list --data-dir open", []string{"may not open agent-signing.key in the directory open; ", "run caprouter as the owner"}},
		{"registry", "validate open/capabilities.yaml", []string{"caprouter: open/capabilities.yaml: permission denied: ", "in the directory open; "}},
		{"new data directory", "serve --data-dir readonly/data", []string{"data_dir readonly/data cannot be made: permission denied: ", "make readonly writable"}},
		{"new files", "init readonly/router", []string{"may not create files in the directory readonly; "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), binary, strings.Fields(tt.args)...)
			cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "GORACE=atexit_sleep_ms=0"}
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			out, err := cmd.CombinedOutput()
			if err == nil || strings.Count(string(out), "\n") != 1 {
				t.Errorf("got %v and %q, want an error on one line", err, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("got %q, want %q in it", out, want)
				}
			}
		})
	}
}

// copyExecutable copies this test binary to dir under the name caprouter.
func copyExecutable(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "caprouter")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755) // the ordinary user executes it
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
