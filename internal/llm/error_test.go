package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/llm"
)

func TestReasonOf(t *testing.T) {
	blocked := &llm.Error{Reason: llm.ReasonBlocked}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"none":                {nil, ""},
		"ours":                {blocked, llm.ReasonBlocked},
		"llm error, wrapped":  {fmt.Errorf("classify: %w", blocked), llm.ReasonBlocked},
		"ours, of a deadline": {&llm.Error{Reason: llm.ReasonEmpty, Err: context.DeadlineExceeded}, llm.ReasonEmpty},
		"deadline":            {fmt.Errorf("x: %w", context.DeadlineExceeded), llm.ReasonTimeout},
		"anything":            {errors.New("boom"), llm.ReasonUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := llm.ReasonOf(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReasons_AreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range llm.Reasons() {
		if seen[r] || !strings.HasPrefix(r, "llm_") {
			t.Errorf("got %q twice, or with an invalid name", r)
		}
		seen[r] = true
	}
	if len(seen) != 15 {
		t.Errorf("got %d reasons, want 15", len(seen))
	}
}

func TestWrapProviderError(t *testing.T) {
	limited := &llm.Error{Reason: llm.ReasonRateLimited, Status: 429}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer stop()
	wrapped := fmt.Errorf("doRequest: %w", &url.Error{Op: "Post", URL: "https://x", Err: limited})

	if got := llm.WrapProviderError(ended, wrapped); got != error(limited) {
		t.Errorf("ours inside an SDK's: got %v, want %v", got, limited)
	}
	if got := llm.WrapProviderError(ended, errors.New("x")); !errors.Is(got, context.Canceled) {
		t.Errorf("after a cancel: got %v", got)
	}
	if got := llm.WrapProviderError(late, errors.New("x")); llm.ReasonOf(got) != llm.ReasonTimeout || !errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("after the deadline: got %v", got)
	}
	got := llm.WrapProviderError(t.Context(), errors.New("invalid character\n\x1b '<'"))
	if llm.ReasonOf(got) != llm.ReasonBadResponse || strings.Contains(got.Error(), "invalid") {
		t.Errorf("unreadable response: got %v", got)
	}
	if cause := errors.Unwrap(got); cause == nil || cause.Error() != "invalid character  '<'" {
		t.Errorf("its cause: got %q", cause)
	}
}

func TestRecoverPanic(t *testing.T) {
	panics := func(v any) (err error) {
		defer llm.RecoverPanic(&err)
		panic(v)
	}
	if got := llm.ReasonOf(panics("interface conversion")); got != llm.ReasonBadResponse {
		t.Errorf("got %q, want %q", got, llm.ReasonBadResponse)
	}
	quiet := func() (err error) {
		defer llm.RecoverPanic(&err)
		return context.Canceled
	}
	if err := quiet(); !errors.Is(err, context.Canceled) {
		t.Errorf("no panic: got %v, want the error unchanged", err)
	}
}
