package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// TestRun_LeavesNoFiles: no key is created in an existing directory, and a missing directory
// is not created.
func TestRun_LeavesNoFiles(t *testing.T) {
	cfg := diagnosable(t, modelRegistry)
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelOK {
		t.Errorf("missing directory: got %+v, want ok", f)
	}
	if _, err := os.Stat(cfg.DataDir); err == nil {
		t.Error("got the data directory created, want it missing")
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	findings(t, cfg, noEnv)
	if entries, err := os.ReadDir(cfg.DataDir); err != nil || len(entries) > 0 {
		t.Errorf("got %v and error %v in the data directory, want nothing", entries, err)
	}
	if err := os.WriteFile(filepath.Join(cfg.DataDir, keyring.File), []byte("no key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelFail || f.Fix == "" {
		t.Errorf("got %+v for a key that others may read, want a failure with its fix", f)
	}
}

// TestRun_FailsOnUnusableDataDir checks directories with which serve does not start.
func TestRun_FailsOnUnusableDataDir(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "afile")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"below a file": filepath.Join(file, "d"), "a file": file}
	if _, err := os.Stat("/proc/self"); err == nil {
		dirs["no place for files"] = "/proc/x/y"
	}
	if os.Getuid() > 0 {
		readOnly := filepath.Join(root, "ro")
		if err := os.Mkdir(readOnly, 0o500); err != nil {
			t.Fatal(err)
		}
		dirs["below a read-only directory"] = filepath.Join(readOnly, "d")
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			cfg := diagnosable(t, modelRegistry)
			cfg.DataDir = dir
			f := findings(t, cfg, noEnv)["data directory"]
			if f.Level != LevelFail || f.Fix == "" || strings.Contains(f.Detail, ".doctor-") {
				t.Errorf("got %+v, want a failure with its fix and without the probe's name", f)
			}
			s, err := app.Start(t.Context(), cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
			if err == nil {
				_ = s.Wait()
				t.Fatal("got serve started, want an error")
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--data-dir") && !strings.Contains(err.Error(), file) {
				t.Errorf("got %q, want one line with the fix", err)
			}
		})
	}
}

// TestRun_ReportsLockedDataDir: a second router would not start with the directory; the
// running one is diagnosed with a warning.
func TestRun_ReportsLockedDataDir(t *testing.T) {
	cfg := diagnosable(t, modelRegistry)
	ctx, stop := context.WithCancel(t.Context())
	s, err := app.Start(ctx, cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	defer func() {
		stop()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	}()
	f := findings(t, cfg, noEnv)["data directory"]
	if want := fmt.Sprintf("held by process %d", os.Getpid()); f.Level != LevelFail || !strings.Contains(f.Detail, want) || f.Fix == "" {
		t.Errorf("got %+v, want a failure with %q and its fix", f, want)
	}
	cfg.Listen = s.Addr()
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelWarn || !strings.Contains(f.Fix, s.Addr()) {
		t.Errorf("running router: got %+v, want a warning", f)
	}
}

func TestRun_Store(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*config.Config)
		level  string
		fix    string
	}{
		"embedded":           {func(*config.Config) {}, LevelOK, ""},
		"delayed sync":       {func(c *config.Config) { c.Store.Sync = "100ms" }, LevelWarn, "store.sync"},
		"store server":       {func(c *config.Config) { c.Store.URL = "nats://127.0.0.1:4222" }, LevelWarn, "sync_interval"},
		"audit log optional": {func(c *config.Config) { c.Audit.Required = false }, LevelWarn, "audit.required"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.DataDir = t.TempDir()
			tt.change(&cfg)
			f := findings(t, cfg, noEnv)["store"]
			if f.Level != tt.level || !strings.Contains(f.Fix, tt.fix) {
				t.Errorf("got %+v, want %s and %q in the fix", f, tt.level, tt.fix)
			}
		})
	}
}
