package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/cli/cmdline"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// writeAuditLog writes an audit log of n requests to a data directory and closes it.
func writeAuditLog(t *testing.T, dir string, n int) {
	t.Helper()
	ctx := t.Context()
	signer, err := keyring.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(ctx, store.Config{Dir: dir, Owner: "test", SyncEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Log(ctx, audit.LogConfig(0.5))
	if err != nil {
		t.Fatal(err)
	}
	trail, err := audit.Open(ctx, audit.Config{Log: log, Keys: teststore.Keys(), Signer: signer, HeadFile: filepath.Join(dir, audit.HeadFile)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		err := trail.Append(ctx, audit.Record{
			Kind: audit.KindOutcome, At: time.Date(2026, 1, 2, 15, 4, i, 0, time.UTC),
			RequestID: "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90", Subject: "ana", Status: contract.StatusCompleted,
			Content: []byte(`{"prompt":"find this text in the file","response":{}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := trail.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// verify runs the command and returns its output.
func verify(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{"audit", "verify"}, args...))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code = cmdline.ReportError(&stderr, root.ExecuteContext(t.Context()))
	return code, stdout.String(), stderr.String()
}

// readFiles reads all files below dir.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAuditVerify(t *testing.T) {
	dir := t.TempDir()
	writeAuditLog(t, dir, 5)
	before := readFiles(t, dir)

	code, out, errOut := verify(t, "--data-dir", dir)
	if code != cmdline.ExitOK || errOut != "" {
		t.Errorf("got exit code %d and stderr %q, want 0 and none\n%s", code, errOut, out)
	}
	for _, line := range []string{"log       " + dir, "contents  5 whole, 0 erased, 0 expired", "verdict   no problems"} {
		if !slices.Contains(strings.Split(out, "\n"), line) {
			t.Errorf("got %s\nwant the line %q", out, line)
		}
	}
	code, out, _ = verify(t, "--data-dir", dir, "--json")
	var r audit.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cmdline.ExitOK || r.Contents != 5 || !r.OK() {
		t.Errorf("got exit code %d and %s (%v), want 0 and 5 contents", code, out, err)
	}
	if after := readFiles(t, dir); !maps.Equal(before, after) {
		t.Error("got a write to the data directory, want none")
	}
}

// Each problem of the files is reported on a separate line, with exit code 1.
func TestAuditVerify_ReportsProblems(t *testing.T) {
	cases := []struct {
		name   string
		tamper func(t *testing.T, dir string)
		want   string // prefix of a line
	}{
		{"head missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, audit.HeadFile)); err != nil {
				t.Fatal(err)
			}
		}, audit.ProblemHeadMissing},
		{"key missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, keyring.File)); err != nil {
				t.Fatal(err)
			}
		}, audit.ProblemHeadUnknownKey},
		{"all records replaced", func(t *testing.T, dir string) {
			other := t.TempDir()
			writeAuditLog(t, other, 3)
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(other, "store"), filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
		}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeAuditLog(t, dir, 5)
			c.tamper(t, dir)
			code, out, errOut := verify(t, "--data-dir", dir)
			if code != cmdline.ExitError || errOut != "" {
				t.Errorf("got exit code %d and stderr %q, want 1 and none", code, errOut)
			}
			if !strings.HasPrefix(out, c.want) || !strings.Contains(out, "problem") {
				t.Errorf("got %s\nwant a line with the prefix %q", out, c.want)
			}
			code, out, _ = verify(t, "--data-dir", dir, "--json")
			if code != cmdline.ExitError || !strings.Contains(out, `"what":"`+c.want) {
				t.Errorf("JSON: got exit code %d and %s", code, out)
			}
			if _, err := os.Stat(filepath.Join(dir, keyring.File)); c.name == "key gone" && err == nil {
				t.Error("got a new key, want none")
			}
		})
	}
}

// A missing log is reported with the reason, if it is known.
func TestAuditVerify_ExplainsMissingLog(t *testing.T) {
	for _, c := range []struct {
		name, want string
		prepare    func(t *testing.T)
		flags      []string
	}{
		{
			"no directory", "there is no audit log in data: there is no such directory; name the data directory with --data-dir DIR",
			func(*testing.T) {},
			[]string{"--data-dir", "data"},
		},
		{
			"empty directory", "there is no audit log in data: there is no store; name the data directory with --data-dir DIR",
			func(t *testing.T) { mkdir(t, "data") },
			[]string{"--data-dir", "data"},
		},
		{
			"store without an audit log", "there is no audit log in data: there is a store without an audit log",
			func(t *testing.T) { mkdir(t, "data/store/jetstream") },
			[]string{"--data-dir", "data"},
		},
		{
			"log deleted",
			"there is no audit log in data: there is a signed head without a log: " +
				"the log was deleted, or is at a URL: name the configuration with its store.url with --config FILE",
			func(t *testing.T) {
				writeAuditLog(t, "data", 1)
				if err := os.RemoveAll("data/store"); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"--data-dir", "data"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			c.prepare(t)
			code, out, errOut := verify(t, c.flags...)
			if want := "caprouter: " + c.want + "\n"; code != cmdline.ExitError || out != "" || errOut != want {
				t.Errorf("got exit code %d, %q and %q, want 1, nothing and %q", code, out, errOut, want)
			}
		})
	}
}

// writeChain writes the chain of a replica with n requests to the store at a URL. dir contains its
// key and its head file.
func writeChain(t *testing.T, srv *teststore.Server, writer, dir, head string, n int) {
	t.Helper()
	ctx := t.Context()
	signer, err := keyring.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := teststore.OpenShared(t, srv, "test")
	log, err := s.Log(ctx, audit.LogConfig(0))
	if err != nil {
		t.Fatal(err)
	}
	heads, err := s.Bucket(ctx, audit.HeadsConfig())
	if err != nil {
		t.Fatal(err)
	}
	chain, err := audit.Open(ctx, audit.Config{
		Log: log, Heads: heads, Members: signer.Verify, Writer: writer, Keys: teststore.Keys(), Signer: signer, HeadFile: filepath.Join(dir, head),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		err := chain.Append(ctx, audit.Record{
			Kind: audit.KindOutcome, RequestID: "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90", Subject: "ana", Status: contract.StatusCompleted, Content: []byte("{}"),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := chain.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// The chains of all replicas in a store at a URL are verified together.
func TestAuditVerify_StoreAtURL(t *testing.T) {
	t.Chdir(t.TempDir())
	srv := teststore.Serve(t, t.TempDir(), -1)
	url := srv.URL
	config := "data_dir: data\nstore:\n  url: " + strings.Replace(url, "://", "://ana:secret@", 1) + "\n"
	if err := os.WriteFile("caprouter.yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := verify(t)
	if shown := strings.Replace(url, "://", "://ana:xxxxx@", 1); code != cmdline.ExitError || errOut != "caprouter: there is no audit log at "+shown+" (store.url)\n" {
		t.Errorf("without a log: got exit code %d, %q and %q", code, out, errOut)
	}
	mkdir(t, "data")
	mkdir(t, "other")
	writeChain(t, srv, "r-one", "data", audit.HeadFile, 3)
	writeChain(t, srv, "r-two", "data", "other.head", 2)
	code, out, errOut = verify(t)
	if code != cmdline.ExitOK || errOut != "" || strings.Count(out, "verdict   no problems\n") != 2 ||
		!strings.Contains(out, ", chain r-one\n") || !strings.Contains(out, ", chain r-two\n") || strings.Contains(out, "secret") {
		t.Errorf("got exit code %d, %q and\n%s", code, errOut, out)
	}
	writeChain(t, srv, "r-three", "other", audit.HeadFile, 1)
	code, out, _ = verify(t, "--json")
	var report audit.LogReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cmdline.ExitError || len(report.Chains) != 3 ||
		report.Chains[1].Writer != "r-three" || report.Chains[1].Problems[0].Kind != audit.ProblemHeadUnknownKey {
		t.Errorf("with a chain of an unknown key: got exit code %d, error %v and\n%s", code, err, out)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestPrintAuditReport(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	cases := []struct {
		name   string
		report audit.Report
		want   string
	}{
		{"no records", audit.Report{}, "log       d\nrecords   none\ncontents  0 whole, 0 erased, 0 expired\nverdict   no problems\n"},
		{
			"well",
			audit.Report{
				Records: 12, Batches: 1, First: 3, Last: 14, From: at, To: at.Add(time.Hour), Contents: 7, ErasedContents: 2, ExpiredContents: 1,
				Unsigned: 2, Notes: []string{"a checkpoint\x1b[31m"},
			},
			"log       d\nrecords   3 to 14 in 1 batch\ntime      2026-01-02T15:04:05Z to 2026-01-02T16:04:05Z\n" +
				"contents  7 whole, 2 erased, 1 expired\nunsigned  2 batches after the signed head\nnote      a checkpoint\ufffd[31m\nverdict   no problems\n",
		},
		{
			"problems",
			audit.Report{Problems: []audit.Problem{
				{Kind: audit.ProblemDeleted, Batch: 7, Record: 31, At: at, Detail: "it is missing"}, {Kind: audit.ProblemHeadMissing, Detail: "none"},
			}},
			"deleted batch 7 record 31 (2026-01-02T15:04:05Z): it is missing\nhead_missing: none\n\n" +
				"log       d\nrecords   none\ncontents  0 whole, 0 erased, 0 expired\nverdict   2 problems\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printAuditReport(&out, "d", &c.report); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}
