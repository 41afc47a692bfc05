package app

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

// A part without a recognized intent is listed as omitted, and the other part is executed.
func TestServer_OmitsUnknownPart(t *testing.T) {
	quality := startAgent(t, "quality_agent", answer("reviewed"))
	s := startServer(t, "clients:\n"+entry("quality_agent", "code_review", "python", quality.url))
	quality.trust(s)
	const prompt = `{"content":{"prompt":"Do a code review of this python module. Then book me a flight to Paris."}`
	for _, tc := range []struct {
		options string
		status  contract.Status
		tasks   int
	}{
		{`}`, contract.StatusPartial, 1},
		{`,"options":{"dry_run":true}}`, contract.StatusAccepted, 0},
	} {
		resp := s.route(prompt + tc.options)
		if resp.Status != tc.status || len(resp.Tasks) != tc.tasks || len(resp.Omitted) != 1 {
			t.Fatalf("got %s with tasks %+v, omitted %+v, want %s with the flight omitted", resp.Status, resp.Tasks, resp.Omitted, tc.status)
		}
		if o := resp.Omitted[0]; o.Reason != contract.OmittedNotUnderstood || o.Title != "book me a flight to Paris" || o.Intent != contract.Unknown {
			t.Errorf("got %+v, want the flight as unknown", o)
		}
	}
	if resp := s.route(`{"content":{"prompt":"Hello! Do a code review of this python module. Thank you very much."}}`); resp.Status != contract.StatusCompleted {
		t.Errorf("got %s with %+v, want the courtesy not listed", resp.Status, resp.Omitted)
	}
}
