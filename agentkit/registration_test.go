package agentkit

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestInstanceName(t *testing.T) {
	for host, want := range map[string]string{
		"web-1":                         "web-1-abcd2345",
		"Web_1.example.org":             "web_1-abcd2345",
		"10.0.0.1":                      "host-10-abcd2345",
		"":                              "host--abcd2345",
		"-x":                            "host--x-abcd2345",
		"büro pc":                       "b-ro-pc-abcd2345",
		strings.Repeat("a", 80) + ".de": strings.Repeat("a", 48) + "-abcd2345",
	} {
		if got := instanceName(host, "abcd2345"); got != want || !contract.ValidAgentID(got) {
			t.Errorf("instanceName(%q): got %q, want %q, a valid name", host, got, want)
		}
	}
}
