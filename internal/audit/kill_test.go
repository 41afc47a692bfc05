package audit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// writeIn is the environment variable with which the test binary appends to the log of a directory
// with many callers, and prints the number of each acknowledged record, until it is killed.
const writeIn = "CAPROUTER_TEST_WRITE_TRAIL_IN"

// appendUntilKilled runs in the process that is killed.
func appendUntilKilled(dir string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Dir: dir, MinFree: 1})
	if err != nil {
		return err
	}
	log, err := s.Log(ctx, LogConfig(0))
	if err != nil {
		return err
	}
	auditLog, err := Open(ctx, Config{Log: log, Keys: teststore.Keys(), Signer: testKey, HeadFile: filepath.Join(dir, HeadFile)})
	if err != nil {
		return err
	}
	base := int(auditLog.openedAt) * 1000 // numbers must be unique
	var mu sync.Mutex
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for i := 0; ; i++ {
				n := base + 8*i + c
				if auditLog.Append(ctx, outcomeOf(time.Now(), n)) != nil {
					return
				}
				mu.Lock()
				fmt.Println(n)
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return nil
}

// A process that is killed while it writes loses no acknowledged record, writes no record twice,
// and leaves a chain that verifies.
func TestLog_SurvivesSIGKILL(t *testing.T) {
	dir := t.TempDir()
	acknowledged := map[string]int{}
	for cycle := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), writeIn+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			acknowledged[lines.Text()] = cycle
			if n == 50*(cycle+1) {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("got the process ended before the kill")
		}
	}

	report, err := Verify(t.Context(), VerifyConfig{DataDir: dir, Signer: testKey})
	if err != nil || !report.OK() {
		t.Fatalf("error %v, problems %v, want none", err, report.Problems)
	}
	s, err := store.Open(t.Context(), store.Config{Dir: dir, MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	log, err := s.Log(t.Context(), LogConfig(0))
	if err != nil {
		t.Fatal(err)
	}
	auditLog, err := Open(t.Context(), Config{Log: log, Keys: teststore.Keys(), Signer: testKey, HeadFile: filepath.Join(dir, HeadFile)})
	if err != nil {
		t.Fatal(err)
	}
	page, err := auditLog.Read(t.Context(), Query{Limit: 1 << 20, MaxScan: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := auditLog.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	there := map[string]int{}
	for i := range page.Records {
		there[page.Records[i].DecisionID]++
	}
	for n, cycle := range acknowledged {
		if got := there["decision-"+n]; got != 1 {
			t.Errorf("got record %s, acknowledged in cycle %d, %d times, want once", n, cycle, got)
		}
	}
	for id, count := range there {
		if count != 1 {
			t.Errorf("got %s %d times, want once", id, count)
		}
	}
}
