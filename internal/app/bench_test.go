package app

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/matcher"
	"github.com/caprouter/caprouter/router"
)

// BenchmarkHandle measures the decision without HTTP: a dry run, and a request with its log line
// and metrics whose agent has no endpoint. test/bench measures whole processes.
func BenchmarkHandle(b *testing.B) {
	for name, dryRun := range map[string]bool{"dry run": true, "with log and metrics": false} {
		b.Run(name, func(b *testing.B) {
			signer, err := keyring.New()
			if err != nil {
				b.Fatal(err)
			}
			c, err := newCore(b.Context(), config.Default(), Options{LogOutput: discard{}, LookupEnv: noEnv}, signer)
			if err != nil {
				b.Fatal(err)
			}
			defer c.close(b.Context())
			snapshot, err := capabilities.Load("../../capabilities/testdata/source.yaml")
			if err != nil {
				b.Fatal(err)
			}
			c.installView(router.NewView(snapshot, c.dispatcher))
			b.ReportAllocs()
			for b.Loop() {
				req := contract.Request{
					Content: contract.Content{Prompt: "Please do a code review of this python module"},
					Options: contract.Options{DryRun: dryRun},
				}
				if _, err := c.router.Handle(b.Context(), &req, contract.LocalCaller()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard receives the log without writing it.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRegisteredAgents measures a match among registered agents, and the cost of another
// registration: the next version of the registry and of the View. It also reports the memory of a
// registered agent in both, without its record in internal/fleet.
func BenchmarkRegisteredAgents(b *testing.B) {
	const intents = 1000
	for _, agents := range []int{1000, 100_000} {
		before := heapBytes()
		var builder capabilities.Builder
		d := &capabilities.Definition{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback(), Grants: map[string]contract.Grant{}}
		caller := &contract.Caller{AllScopes: true}
		queries := make([]matcher.Query, agents)
		for i := range agents {
			e := &contract.RegistryEntry{
				ID: fmt.Sprintf("agent_%06d", i), Origin: contract.OriginRegistration, State: contract.AgentActive,
				Match:    contract.Match{Intent: []string{fmt.Sprint("intent_", i%intents)}, Domains: []string{fmt.Sprint("domain_", i/intents)}},
				Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: refusing},
			}
			d.Agents = append(d.Agents, e)
			queries[i] = matcher.Query{Intent: e.Match.Intent[0], Domains: e.Match.Domains, Caller: caller}
			d.Grants[e.ID] = contract.Grant{Intents: e.Match.Intent, Domains: e.Match.Domains}
		}
		build := func() *capabilities.Snapshot {
			s, err := builder.Build(d)
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
		signer, err := keyring.New()
		if err != nil {
			b.Fatal(err)
		}
		c, err := newCore(b.Context(), config.Default(), Options{LogOutput: discard{}, LookupEnv: noEnv}, signer)
		if err != nil {
			b.Fatal(err)
		}
		view := router.NewTrainedView(build(), nil, c.dispatcher)
		b.Run(fmt.Sprintf("match/agents=%d", agents), func(b *testing.B) {
			var found matcher.Result
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 7919) % agents {
				view.Index.Match(&queries[i], view.Live, &found)
			}
			b.ReportMetric((heapBytes()-before)/float64(agents), "kept-B/agent")
		})
		b.Run(fmt.Sprintf("join/agents=%d", agents), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next := *d.Agents[agents-1]
				next.Description += "."
				d.Agents[agents-1] = &next
				view = view.WithMembers(build(), c.dispatcher)
			}
		})
		c.close(b.Context())
		runtime.KeepAlive(d)
	}
}

// heapBytes returns the size of the reachable heap.
func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
