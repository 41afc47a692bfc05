package teach

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
)

// The choices of teach begin with the agents that the last misroute expects.
func TestExpectedFirst_PrefersLastFeedback(t *testing.T) {
	var agents []*contract.RegistryEntry
	for _, id := range []string{"a", "b", "c", "d"} {
		agents = append(agents, &contract.RegistryEntry{ID: id})
	}
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	expects := func(after time.Duration, ids ...string) contract.Feedback {
		return contract.Feedback{Verdict: contract.VerdictMisroute, ExpectedAgents: ids, At: at.Add(after)}
	}
	for _, tt := range []struct {
		name     string
		feedback []contract.Feedback
		want     []string
	}{
		{"none", nil, []string{"a", "b", "c", "d"}},
		{"last", []contract.Feedback{expects(time.Hour, "c", "gone", "b"), expects(0, "d"), expects(2 * time.Hour)}, []string{"b", "c", "a", "d"}},
		{"no agent", []contract.Feedback{expects(0, "d"), {Verdict: contract.VerdictMisroute, ExpectedNone: true, At: at.Add(time.Hour)}}, []string{"a", "b", "c", "d"}},
	} {
		var got []string
		for _, a := range expectedFirst(agents, tt.feedback) {
			got = append(got, a.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: agents (-want +got):\n%s", tt.name, diff)
		}
	}
}
