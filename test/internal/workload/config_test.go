package workload

import (
	"testing"

	"github.com/caprouter/caprouter/internal/config"
)

func TestConfig_IsValid(t *testing.T) {
	dir := t.TempDir()
	path, err := Config{AgentsURL: "http://127.0.0.1:1", Store: "retention: { max_bytes: 64MiB }"}.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("Validate: got %v, want nil", err)
	}
	if cfg.DataDir != DataDir(dir) || cfg.PublicURL != PublicURL || cfg.Listen != "127.0.0.1:0" || cfg.Store.Retention.MaxBytes != "64MiB" {
		t.Errorf("got data_dir %q, public_url %q, listen %q, max_bytes %s", cfg.DataDir, cfg.PublicURL, cfg.Listen, cfg.Store.Retention.MaxBytes)
	}
}
