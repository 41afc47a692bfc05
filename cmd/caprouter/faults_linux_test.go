package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/testkit"
)

// router is a caprouter process with the data directory dir/data.
type router struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	ended chan error // receives the end of the process
	log   *testkit.LogBuffer
}

const faultsRegistry = `clients:
  counter: { match: { intent: [count_words], domains: [text] } }
fallback: { policy: B }
`

// startRouter starts a process and returns when it listens.
func startRouter(t *testing.T, dir string, args ...string) *router {
	t.Helper()
	r := &router{t: t, ended: make(chan error, 1), log: &testkit.LogBuffer{}}
	registry := filepath.Join(dir, "capabilities.yaml")
	if err := os.WriteFile(registry, []byte(faultsRegistry), 0o600); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.Command(copyExecutable(t, t.TempDir()), append([]string{
		"serve", "--listen", "127.0.0.1:0", "--registry", registry, "--data-dir", filepath.Join(dir, "data"),
	}, args...)...)
	r.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "CAPROUTER_DISPATCH_TIMEOUT_MS=2000")
	out, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(r.log, lines.Text())
			if _, rest, ok := strings.Cut(lines.Text(), "listening on "); ok {
				addr, _, _ := strings.Cut(rest, `"`)
				listens <- addr
			}
		}
		close(listens)
		r.ended <- r.cmd.Wait()
	}()
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	addr := testkit.Receive(t, listens)
	if addr == "" {
		t.Fatalf("start the router:\n%s", r.log)
	}
	r.url = "http://" + addr
	return r
}

// send returns the status and the body of a response, 0 without one.
func (r *router) send(method, path, body string) (int, string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

const (
	syncBody  = `{"content":{"prompt":"count words of this text"}}`
	asyncBody = `{"content":{"prompt":"count words of this text"},"options":{"mode":"async"}}`
)

// exitCode waits for the end of the process.
func (r *router) exitCode() int {
	r.t.Helper()
	err := testkit.Receive(r.t, r.ended)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return 0
}

func (r *router) stop() int {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	return r.exitCode()
}

// A router whose lock or store was replaced accepts no request that the next process would not
// find, and ends.
func TestServe_EndsIfDataDirectoryIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		name    string
		replace func(data string) error
		want    string
	}{
		{"lock removed", func(data string) error { return os.Remove(filepath.Join(data, "lock")) }, "data/lock was removed or replaced"},
		{"store replaced", func(data string) error {
			store := filepath.Join(data, "store")
			return errors.Join(os.Rename(store, store+".old"), os.Mkdir(store, 0o700))
		}, "data/store was removed or replaced"},
		{"directory renamed", func(data string) error { return os.Rename(data, data+".old") }, "data/lock was removed or replaced"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			r := startRouter(t, dir)
			if err := tt.replace(filepath.Join(dir, "data")); err != nil {
				t.Fatal(err)
			}
			if got := r.exitCode(); got != 1 {
				t.Errorf("got exit code %d, want 1", got)
			}
			if !strings.Contains(r.log.String(), tt.want) {
				t.Errorf("got log %s, want %q in it", r.log, tt.want)
			}
		})
	}
}

// After a write error the router rejects asynchronous requests at once, and is not ready until a
// write has succeeded.
func TestServe_NotReadyAfterWriteError(t *testing.T) {
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("needs prlimit")
	}
	dir := t.TempDir()
	r := startRouter(t, dir)
	limit := func(bytes string) {
		t.Helper()
		if out, err := exec.Command(prlimit, "--pid", fmt.Sprint(r.cmd.Process.Pid), "--fsize="+bytes+":").CombinedOutput(); err != nil {
			t.Fatalf("prlimit: %v: %s", err, out)
		}
	}
	if status, body := r.send(http.MethodPost, "/api/v1/route", asyncBody); status != http.StatusAccepted {
		t.Fatalf("before the limit: got %d %s, want 202", status, body)
	}
	limit("1")
	if _, body := r.send(http.MethodPost, "/api/v1/route", syncBody); !strings.Contains(body, "before the decision was recorded") {
		t.Errorf("during the limit: got %s, want a timeout without a record", body)
	}
	for range 3 {
		if status, body := r.send(http.MethodGet, "/readyz", ""); status != http.StatusOK || !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, `"ready":false`) {
			t.Errorf("readyz during the limit: got %d %s, want degraded", status, body)
		}
		if status, body := r.send(http.MethodPost, "/api/v1/route", asyncBody); status != http.StatusServiceUnavailable {
			t.Errorf("asynchronous request during the limit: got %d %s, want 503", status, body)
		}
	}
	limit("unlimited")
	testkit.Eventually(t, "the router is ready", func() bool {
		_, body := r.send(http.MethodGet, "/readyz", "")
		return strings.Contains(body, `"status":"ready"`)
	})
	if status, body := r.send(http.MethodPost, "/api/v1/route", asyncBody); status != http.StatusAccepted {
		t.Errorf("after the limit: got %d %s, want 202", status, body)
	}
	if got := r.stop(); got != 0 {
		t.Errorf("got exit code %d, want 0\n%s", got, r.log)
	}
}

// smallDisk mounts a file system. It returns its directory, and a function that uses up the free
// space and returns the file to remove.
func smallDisk(t *testing.T) (dir string, fill func() string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("caprouter-test", dir, "tmpfs", 0, "size=128m,mode=0700"); err != nil {
		t.Skipf("needs the right to mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, func() string {
		file, err := os.Create(filepath.Join(dir, "other-program"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for block := make([]byte, 1<<20); ; {
			n, err := file.Write(block)
			switch {
			case err == nil:
			case !errors.Is(err, syscall.ENOSPC):
				t.Fatal(err)
			case n == 0:
				return file.Name()
			}
		}
	}
}

// A router starts without free disk space, serves reads, and accepts requests as soon as space is
// free. It does not log each rejected request.
func TestServe_StartsOnFullDisk(t *testing.T) {
	dir, fill := smallDisk(t)
	r := startRouter(t, dir)
	if status, body := r.send(http.MethodPost, "/api/v1/route", syncBody); status != http.StatusOK {
		t.Fatalf("before the disk is full: got %d %s, want a response", status, body)
	}
	if status, body := r.send(http.MethodGet, "/api/v1/decisions", ""); status != http.StatusOK { // waits until it is recorded
		t.Fatalf("before the disk is full: got %d %s, want the decisions", status, body)
	}
	_ = r.cmd.Process.Kill()
	testkit.Receive(t, r.ended)
	file := fill()
	r = startRouter(t, dir)
	if _, body := r.send(http.MethodGet, "/readyz", ""); !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, "the disk has 0 MiB free") {
		t.Errorf("readyz: got %s, want degraded because of the disk", body)
	}
	if status, body := r.send(http.MethodGet, "/api/v1/decisions", ""); status != http.StatusOK || !strings.Contains(body, "count words of this text") {
		t.Errorf("read: got %d %s, want the request", status, body)
	}
	for _, body := range []string{syncBody, asyncBody} {
		if status, got := r.send(http.MethodPost, "/api/v1/route", body); status != http.StatusServiceUnavailable {
			t.Errorf("write: got %d %s, want 503", status, got)
		}
	}
	for range 5 {
		for _, body := range []string{syncBody, asyncBody} {
			r.send(http.MethodPost, "/api/v1/route", body)
		}
	}
	for _, line := range []string{`"msg":"cannot write the audit log"`, `"operation":"the request cannot be stored"`} {
		testkit.Eventually(t, "the log has "+line, func() bool { return strings.Contains(r.log.String(), line) })
		if n := strings.Count(r.log.String(), line); n != 1 {
			t.Errorf("got %d lines with %s for six rejected requests, want 1:\n%s", n, line, r.log)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a request is accepted", func() bool {
		status, _ := r.send(http.MethodPost, "/api/v1/route", asyncBody)
		return status == http.StatusAccepted
	})
	if got := r.stop(); got != 0 {
		t.Errorf("got exit code %d, want 0\n%s", got, r.log)
	}
}
