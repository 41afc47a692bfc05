package store_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/loglimit"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
)

// While the store is full or away, the log has one line for each operation, and all lines about
// other errors.
func TestCallerError_LimitsLinesOfTemporaryErrors(t *testing.T) {
	var log testkit.LogBuffer
	logger := slog.New(loglimit.NewHandler(log.Logger().Handler()))
	for i := range 5 {
		for _, err := range []error{
			store.CallerError(t.Context(), logger, "the request cannot be stored", fmt.Errorf("create: %w", store.ErrFull)),
			store.CallerError(t.Context(), logger, "the lease cannot be stored", store.ErrUnavailable),
			store.CallerError(t.Context(), logger, "the goal cannot be stored", errors.New("a bug")),
		} {
			if err == nil {
				t.Fatalf("call %d: got no error", i)
			}
		}
	}
	for operation, want := range map[string]int{"the request": 1, "the lease": 1, "the goal": 5} {
		if got := strings.Count(log.String(), `"operation":"`+operation+` cannot be stored"`); got != want {
			t.Errorf("%s: got %d lines, want %d:\n%s", operation, got, want, log.String())
		}
	}
}
