package capabilities_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/capabilities"
)

func TestAddExample_KeepsRestOfFile(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"block": {
			"clients: # ours\n  payer:\n    match: { intent: [pay], domains: [bills] }\n    examples:\n      pay:\n        - pay it # first\n    # end\n",
			"clients: # ours\n  payer:\n    match: { intent: [pay], domains: [bills] }\n    examples:\n      pay:\n        - pay it # first\n        - \"pay: now\"\n    # end\n",
		},
		"no examples yet, under agents": {
			"agents:\n  payer: { match: { intent: [pay], domains: [bills] } }\n",
			"agents:\n  payer: { match: { intent: [pay], domains: [bills] }, examples: { pay: [\"pay: now\"] } }\n",
		},
	} {
		got, err := capabilities.AddExample("r.yaml", []byte(tt.text), "payer", "pay", "pay: now")
		if diff := cmp.Diff(tt.want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestAddExample_RejectsInvalidInput(t *testing.T) {
	const valid = "clients:\n  payer:\n    match: { intent: [pay], domains: [bills] }\n"
	for name, tt := range map[string]struct{ text, agent, intent, example, want string }{
		"unknown agent":       {valid, "other", "pay", "x", "r.yaml has no agent other"},
		"intent of no agent":  {valid, "payer", "sing", "x", "r.yaml: agent payer does not declare the intent sing"},
		"empty example":       {valid, "payer", "pay", "", `"" cannot be an example: it must not be empty`},
		"control character":   {valid, "payer", "pay", "pay\x01", `"pay\x01" cannot be an example: it contains control characters`},
		"long example":        {valid, "payer", "pay", strings.Repeat("x", 5000), `…" cannot be an example: it is longer than `},
		"registry with error": {"client: {}\n", "payer", "pay", "x", "r.yaml:1:1"},
	} {
		_, err := capabilities.AddExample("r.yaml", []byte(tt.text), tt.agent, tt.intent, tt.example)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
