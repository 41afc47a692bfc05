package mcphost_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/mcphost"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fullJournal fails to write.
type fullJournal struct{}

func (fullJournal) RecordToolCall(context.Context, *history.ToolCall, *redact.Masking) error {
	return errors.New("the disk is full")
}

type discardMeter struct{}

func (discardMeter) RecordToolCall(string, string, string, time.Duration) {}
func (discardMeter) RecordMCPRegistryLoad(bool)                           {}

// A call that cannot be recorded is not made. A call for a task does not depend on the
// journal, because the decision about the task is already recorded.
func TestCall_IsNotMadeUnrecorded(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = fmt.Fprint(w, `{"type":"text","content":"done"}`)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "mcp.json")
	file := fmt.Sprintf(`{"plugins":[{"id":"plugin","endpoint":%q,"actions":[{"name":"run"}]}]}`, server.URL)
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	redactor, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	log := &testkit.LogBuffer{}
	bucket, err := teststore.Open(t).Bucket(t.Context(), store.BucketConfig{Name: "MCP_SERVERS"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := mcphost.New(t.Context(), mcphost.Config{
		Path: path, Bucket: bucket, Keys: teststore.Keys(), IsAgent: func(*contract.Caller) bool { return false },
		Journal: fullJournal{}, Redactor: redactor, Meter: discardMeter{}, Logger: log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	h.Start()
	for agent, want := range map[string]int64{"": 0, "runner": 1} {
		_, err := h.Call(t.Context(), &mcphost.Call{
			Action: contract.Action{Action: "plugin.run"}, Caller: &contract.Caller{AllScopes: true}, Agent: agent,
		})
		failed, ok := errors.AsType[*contract.ActionError](err)
		if refused := ok && failed.Code == contract.ActionNotRecorded; refused != (want == 0) || calls.Load() != want {
			t.Errorf("agent %q: got error %v after %d calls, want %d calls", agent, err, calls.Load(), want)
		}
		calls.Store(0)
	}
}
