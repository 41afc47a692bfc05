package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
)

// A SIGTERM during the start, which ends the context, is not a failure.
func TestServe_InterruptedStartSucceeds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errOut bytes.Buffer
	dir := t.TempDir()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "error"}
	if code := execute(ctx, args, strings.NewReader(""), &out, &errOut); code != cmdline.ExitOK || errOut.Len() > 0 {
		t.Errorf("got exit code %d and %q, want 0 and no message", code, &errOut)
	}
}
