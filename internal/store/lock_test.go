package store_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/store"
)

// process is a child process that runs this test binary in a role.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, role, dir string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childRoleEnv+"="+role, "STORE_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, lines: bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

// kill sends SIGKILL and waits until the process has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// expect reads lines of the process until one of them is want.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	for p.lines.Scan() {
		if p.lines.Text() == want {
			return
		}
	}
	t.Fatalf("got the end of the child process, want the line %q before", want)
}

// grep returns a file below dir that contains the text, or "".
func grep(t *testing.T, dir, text string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), text) {
			found = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOpen_RejectsLockedDirectory(t *testing.T) {
	dir := t.TempDir()
	wantLocked := func(pid int) {
		t.Helper()
		s, err := store.Open(t.Context(), store.Config{Dir: dir})
		if err == nil {
			_ = s.Close()
		}
		wantErr(t, "second open", err, store.ErrLocked)
		want := fmt.Sprintf("%s is held by pid %d: stop it, or choose another --data-dir", filepath.Join(dir, "lock"), pid)
		if err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("got error %q, want one line with %q", err, want)
		}
	}
	s := open(t, dir)
	wantLocked(os.Getpid())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	other := startChild(t, "hold", dir)
	other.expect(t, "open")
	wantLocked(other.cmd.Process.Pid)
	other.kill()
	open(t, dir) // a killed process releases the lock
}

func TestOpen_FailureReleasesLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blocked := t.TempDir() // has a file instead of the directory of the engine
	if err := os.WriteFile(filepath.Join(blocked, "store"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]store.Config{
		"empty config":        {},
		"directory is a file": {Dir: file},
		"engine cannot start": {Dir: blocked},
		"no server":           {URL: "nats://127.0.0.1:1"},
		"not a URL":           {URL: "nats://user:secret@127.0.0.1:no"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), cfg)
			if err == nil {
				_ = s.Close()
				t.Fatal("got no error, want one")
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("got error %v, want one without the password", err)
			}
		})
	}
	if err := os.Remove(filepath.Join(blocked, "store")); err != nil {
		t.Fatal(err)
	}
	open(t, blocked) // the directory is not locked
}
