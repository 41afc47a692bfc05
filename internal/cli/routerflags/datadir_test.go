package routerflags

import (
	"os"
	"testing"
)

// Without --data-dir the directory of the router is used.
func TestDataDir_FindsDirectoryOfRouter(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		name, file, env, want string
	}{
		{"default", "", "", "./caprouter-data"},
		{"file", "data_dir: from-file\n", "", "from-file"},
		{"environment", "data_dir: from-file\n", "from-env", "from-env"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file != "" {
				if err := os.WriteFile("caprouter.yaml", []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.env != "" {
				t.Setenv("CAPROUTER_DATA_DIR", c.env)
			}
			for dir, want := range map[string]string{"": c.want, "named": "named"} {
				flags := DataDir{dataDir: dir}
				if cfg, err := flags.LoadConfig(); err != nil || cfg.DataDir != want {
					t.Errorf("--data-dir %q: got %q (%v), want %q", dir, cfg.DataDir, err, want)
				}
			}
		})
	}
}
