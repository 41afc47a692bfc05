package capabilities

import (
	"testing"
)

// registryOf returns a registry file with one agent.
func registryOf(agent string) string {
	return "clients:\n  " + agent + ":\n    match: {intent: [x], domains: [d]}\n"
}

const brokenRegistry = "clients:\n  a: {match: {intents: [x]}}\n"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
