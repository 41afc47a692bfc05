package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/cli/cmdline"
)

// Damage in the middle of the audit log prevents the start until it is repaired.
func TestStoreRepair_StartsAgain(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	r := startRouter(t, dir)
	for range 3 {
		if status, body := r.send(http.MethodPost, "/api/v1/route", syncBody); status != http.StatusOK {
			t.Fatalf("got %d %s, want 200", status, body)
		}
	}
	if got := r.stop(); got != 0 {
		t.Fatalf("got exit code %d, want 0\n%s", got, r.log)
	}
	block := filepath.Join(data, "store", "jetstream", "$G", "streams", "AUDIT", "msgs", "1.blk")
	text, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(block, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serve", "--listen", "127.0.0.1:0", "--registry", filepath.Join(dir, "capabilities.yaml"), "--log-level", "error"}, cmdline.ExitError, "run: caprouter store repair --data-dir " + data},
		{[]string{"store", "repair", "--dry-run"}, cmdline.ExitError, "1 damaged place, nothing was changed"},
		{[]string{"store", "repair"}, cmdline.ExitOK, "1 damaged place repaired"},
		{[]string{"store", "repair", "--json"}, cmdline.ExitOK, `"damage":[]`},
	} {
		var out bytes.Buffer
		code := execute(t.Context(), append(tt.args, "--data-dir", data), strings.NewReader(""), &out, &out)
		if code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%q: got exit code %d and %s, want %d and %q", tt.args, code, &out, tt.code, tt.want)
		}
	}
	if kept, _ := filepath.Glob(filepath.Join(data, "store", "damaged", "AUDIT.1.*.damaged")); len(kept) != 1 {
		t.Errorf("got kept files %q, want one", kept)
	}
	r = startRouter(t, dir)
	if got := r.stop(); got != 0 {
		t.Errorf("got exit code %d, want 0\n%s", got, r.log)
	}
}
