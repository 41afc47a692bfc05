package routerflags

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/config"
)

func TestExplainMissingRegistry(t *testing.T) {
	missing := func(path string) error {
		return fmt.Errorf("load: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
	}
	var unnamed, named config.Config
	named.Registry.File = "a.yaml"
	tests := []struct {
		name string
		err  error
		cfg  *config.Config
		want string
	}{
		{"default file", missing(config.DefaultRegistryFile), &unnamed, "there is no registry file capabilities.yaml: name one"},
		{"named file", missing("a.yaml"), &named, "there is no registry file a.yaml: name one"},
		{"other file", missing("key.pem"), &named, "load: open key.pem: "},
		{"other error", errors.New("broken"), &named, "broken"},
	}
	for _, tt := range tests {
		if got := ExplainMissingRegistry(tt.err, tt.cfg); !strings.HasPrefix(got.Error(), tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if err := ExplainMissingRegistry(nil, &unnamed); err != nil {
		t.Errorf("no error: got %v", err)
	}
}
