package app

import (
	"fmt"
	"slices"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/classifier"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/golden"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
)

// maxHijackRate is the maximum share of hijacks that may route a request to the attacker's agent
// without a model.
const maxHijackRate = 0.015

// TestLexical_ResistsHijackingWords counts how often a text around a request that is dispatched
// correctly makes the lexical classifier route it to the agent named in the text. Even then the
// agents are limited to those of the caller.
func TestLexical_ResistsHijackingWords(t *testing.T) {
	testkit.SkipWithRace(t)
	t.Run("known", func(t *testing.T) { countHijacks(t, knownHijacks(t)) })
	t.Run("own", func(t *testing.T) { countHijacks(t, ownHijacks()) })
}

// hijackCounts counts hijacks: flipped were routed to the victim only, joined to the victim and the right
// agents, lost to other agents or none.
type hijackCounts struct{ flipped, joined, lost, tried int }

func (f hijackCounts) String() string {
	return fmt.Sprintf("%d of %d flipped (%.1f %%), in %d of them the right agents are chosen too; %d lost", f.flipped, f.tried, 100*f.rate(), f.joined, f.lost)
}

func (f hijackCounts) rate() float64 { return float64(f.flipped) / float64(max(f.tried, 1)) }

func (f *hijackCounts) add(o hijackCounts) {
	f.flipped, f.joined, f.lost, f.tried = f.flipped+o.flipped, f.joined+o.joined, f.lost+o.lost, f.tried+o.tried
}

func countHijacks(t *testing.T, hijacks []hijack) {
	t.Helper()
	s := startServer(t, "clients: {}\n", func(cfg *config.Config) {
		cfg.Registry.File, cfg.Registry.HotReload, cfg.Classifier.Mode, cfg.Telemetry.LogLevel = sampleRegistryFile, false, classifier.ModeLexical, "error"
	})
	cases, registry := goldenSet(t)
	chosen := func(text string) []string {
		req := &contract.Request{Content: contract.Content{Prompt: text}, Options: contract.Options{DryRun: true}}
		resp, err := s.core.router.Handle(t.Context(), req, contract.LocalCaller())
		if err != nil {
			t.Fatal(err)
		}
		return resp.Decision.Chosen
	}
	cases = slices.DeleteFunc(cases, func(c golden.Case) bool {
		return c.Expect.Outcome != golden.Dispatch || !sameAgents(chosen(c.Input), c.Expect.Agents)
	})
	var all hijackCounts
	for i := range hijacks {
		var one hijackCounts
		for k := range cases {
			one.add(tryHijack(&hijacks[i], &cases[k], registry, chosen))
		}
		t.Logf("%s: %v", hijacks[i].ID, one)
		all.add(one)
	}
	t.Logf("%d templates, %d correctly dispatched cases: %v", len(hijacks), len(cases), all)
	switch {
	case all.tried == 0:
		t.Error("got no hijack, want some")
	case all.rate() > maxHijackRate:
		t.Errorf("got %v, want at most %.0f %%", all, 100*maxHijackRate)
	}
}

// tryHijack wraps the hijack around the case once for each intent of each agent that the case is not for.
func tryHijack(h *hijack, c *golden.Case, registry *capabilities.Snapshot, chosen func(string) []string) (f hijackCounts) {
	for _, victim := range registry.Catalogue.Agents {
		if slices.Contains(c.Expect.Agents, victim.ID) {
			continue
		}
		for _, intent := range victim.Match.Intent {
			f.tried++
			got := chosen(h.around(c.Input, victim, intent))
			switch {
			case slices.Contains(got, victim.ID):
				f.flipped++
				if containsAll(got, c.Expect.Agents) {
					f.joined++
				}
			case !sameAgents(got, c.Expect.Agents):
				f.lost++
			}
		}
	}
	return f
}

func sameAgents(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func containsAll(list, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(list, id) })
}
