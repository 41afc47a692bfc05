package fallbackpolicy

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

func TestHandler_SelectsPolicy(t *testing.T) {
	for _, tt := range []struct {
		registry        string
		answerByDefault bool
		want            string
		allowed         string // the policies that a request may select
	}{
		{capabilities.FallbackAnswer, false, "A", "AB"},
		{capabilities.FallbackUnsupported, true, "B", "B"},
		{capabilities.FallbackPropose, true, "C", "BC"},
		{capabilities.FallbackAuto, true, "A", "AB"},
		{capabilities.FallbackAuto, false, "B", "B"},
	} {
		h := New(Config{AnswerByDefault: tt.answerByDefault})
		c := &capabilities.Catalogue{}
		c.Fallback.Policy = tt.registry
		if got := h.selectPolicy(c); got != tt.want {
			t.Errorf("registry %s, answer by default %v: got policy %s, want %s", tt.registry, tt.answerByDefault, got, tt.want)
		}
		var allowed strings.Builder
		for _, policy := range []string{"A", "B", "C"} {
			e := &contract.Error{}
			if h.CheckPolicy(c, policy, e); len(e.Details) == 0 {
				allowed.WriteString(policy)
			}
		}
		if allowed.String() != tt.allowed {
			t.Errorf("registry %s, answer by default %v: got allowed %s, want %s", tt.registry, tt.answerByDefault, allowed.String(), tt.allowed)
		}
	}
}
