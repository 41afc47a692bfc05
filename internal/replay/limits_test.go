package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/replay"
)

func TestRun_IsBounded(t *testing.T) {
	r := newRecorder(t, inForce)
	for range 5 {
		r.route("settle this invoice", newOperator())
	}
	bounded := func(cursor string) func(*replay.Config) {
		return func(cfg *replay.Config) { cfg.Limit, cfg.Cursor = 3, cursor }
	}
	first := r.replay(inForce, bounded(""))
	if first.Replayed != 3 || first.NextCursor == "" {
		t.Fatalf("got %+v, want three decisions and a cursor", first)
	}
	if rest := r.replay(inForce, bounded(first.NextCursor)); rest.Replayed != 2 || rest.NextCursor != "" {
		t.Errorf("got %+v, want the other two decisions and no cursor", rest)
	}
	if exact := r.replay(inForce, func(cfg *replay.Config) { cfg.Limit = 5 }); exact.Replayed != 5 || exact.NextCursor != "" {
		t.Errorf("got %+v, want all decisions and no cursor", exact)
	}
	if later := r.replay(inForce, func(cfg *replay.Config) { cfg.Since = time.Now().Add(time.Hour) }); later.Replayed != 0 {
		t.Errorf("got %+v, want no decision", later)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	cfg := replay.Config{Candidate: parseRegistry(t, inForce), Reader: newOperator(), Progress: func(n, _ int) {
		if done = n; n == 2 {
			cancel()
		}
	}}
	_, err := replay.Run(ctx, cfg, func(ctx context.Context, q contract.DecisionQuery) (*contract.DecisionPage, error) {
		return r.router.History().Decisions(ctx, q, newOperator())
	})
	if !errors.Is(err, context.Canceled) || done != 2 {
		t.Errorf("got %v after %d decisions, want the error of the context after 2", err, done)
	}
}

// A log without a record that the reader may see also ends the replay.
func TestRun_BoundsReads(t *testing.T) {
	reads := 0
	report, err := replay.Run(t.Context(), replay.Config{Candidate: parseRegistry(t, inForce), Reader: newOperator(), Limit: 200},
		func(context.Context, contract.DecisionQuery) (*contract.DecisionPage, error) {
			reads++
			return &contract.DecisionPage{NextCursor: fmt.Sprint(reads)}, nil
		})
	if err != nil || reads > 30 || report.NextCursor == "" {
		t.Errorf("got %+v, %v after %d reads, want a cursor after about 20", report, err, reads)
	}
}

func TestRun_LimitsReport(t *testing.T) {
	page := &contract.DecisionPage{NextCursor: "end"}
	for range 1100 {
		page.Decisions = append(page.Decisions, contract.DecisionEntry{
			RequestID: "r", Status: contract.StatusCompleted, Prompt: strings.Repeat("é ", 5000),
			Decision: &contract.Decision{Chosen: []string{"biller"}, Classification: contract.Classification{Intent: "pay_bill", Source: contract.SourceCache}},
		})
	}
	read := func(_ context.Context, q contract.DecisionQuery) (*contract.DecisionPage, error) {
		if q.Cursor != "" {
			return &contract.DecisionPage{NextCursor: q.Cursor}, nil
		}
		return page, nil
	}
	for _, tt := range []struct {
		answerByDefault bool
		policy          string
	}{{true, "A"}, {false, "B"}} {
		report, err := replay.Run(t.Context(), replay.Config{
			Candidate: parseRegistry(t, "clients:"+reviewer), Reader: newOperator(), Limit: replay.MaxLimit, AnswerByDefault: tt.answerByDefault,
		}, read)
		if err != nil {
			t.Fatal(err)
		}
		if report.Changed != 1100 || len(report.Changes) != 1000 {
			t.Errorf("got %d changes, %d of them listed, want 1100 and 1000", report.Changed, len(report.Changes))
		}
		first := report.Changes[0]
		if n := utf8.RuneCountInString(first.Prompt); n != 200 || !strings.HasSuffix(first.Prompt, "é…") && !strings.HasSuffix(first.Prompt, " …") {
			t.Errorf("got a prompt of %d characters, %q, want 200 and a mark", n, first.Prompt)
		}
		if got := first.After.Fallback; got == nil || *got != tt.policy {
			t.Errorf("got fallback %v of a registry that leaves the choice, want %s", got, tt.policy)
		}
	}
}
