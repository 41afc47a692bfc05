package orchestrator_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/orchestrator"
)

// Servers without their credential are not named as connected.
func TestRun_NamesConnectedServersOnly(t *testing.T) {
	for needsAuth, suggestion := range map[string]string{
		"mail":       "connected are files",
		"files mail": "declare servers in the registry file of MCP servers, and check their status: caprouter mcp list",
	} {
		t.Run(needsAuth, inBubble(func(t *testing.T) {
			rec := newRecord(oneRead)
			rec.Goal.AvailableServers = []string{"database"}
			r := newHarness(t, rec, nil)
			registry := registryOf(t, testRegistry)
			for i := range registry {
				registry[i].NeedsAuth = slices.Contains(strings.Fields(needsAuth), registry[i].Name)
			}
			r.config.Registry = registry
			if got := r.run(t).Errors; len(got) != 1 || got[0].Suggestion != suggestion {
				t.Errorf("got %+v, want the suggestion %q", got, suggestion)
			}
		}))
	}
}

// A misspelt name in available_servers is reported as such, because servers are there.
func TestRun_SuggestsServerForUnknownOne(t *testing.T) {
	for wanted, suggestion := range map[string]string{
		"flies":    "did you mean files?",
		"database": "connected are files, mail",
	} {
		t.Run(wanted, inBubble(func(t *testing.T) {
			rec := newRecord(oneRead)
			rec.Goal.AvailableServers = []string{wanted}
			r := newHarness(t, rec, func(context.Context, *orchestrator.Call) (*contract.ActionResult, error) {
				return textResult("hello"), nil
			})
			want := []contract.RunError{{
				Reason: contract.ReasonNoServers, Message: "no server of available_servers is connected: " + wanted, Suggestion: suggestion,
			}}
			if diff := cmp.Diff(want, r.run(t).Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		}))
	}
}
