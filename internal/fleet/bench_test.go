package fleet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
)

// BenchmarkHeartbeat measures one heartbeat of ten thousand agents.
func BenchmarkHeartbeat(b *testing.B) {
	const agents = 10_000
	r, now := newRoster(), time.Now()
	for i := range agents {
		r.put(benchInstance(i), now)
	}
	i := 0
	for b.Loop() {
		r.renew(r.find(instanceKey{benchID(i % agents), "one"}), now)
		i++
	}
}

// BenchmarkRegistration measures the cost of another registration: the entries of the roster and
// the new version of the registry. It also reports the memory of a registered agent, without its
// part of the match index (matcher.BenchmarkBuild).
func BenchmarkRegistration(b *testing.B) {
	for _, agents := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(agents), func(b *testing.B) {
			before := heapBytes()
			r, now := newRoster(), time.Now()
			d := &capabilities.Definition{Routing: capabilities.DefaultRouting(), Fallback: capabilities.DefaultFallback(), Grants: map[string]contract.Grant{}}
			for i := range agents {
				r.put(benchInstance(i), now)
				d.Grants[benchID(i)] = contract.Grant{Intents: []string{"count_words"}, Domains: []string{"text"}}
			}
			var builder capabilities.Builder
			build := func() *capabilities.Snapshot {
				d.Agents = r.entries()
				snapshot, err := builder.Build(d)
				if err != nil {
					b.Fatal(err)
				}
				return snapshot
			}
			snapshot := build()
			b.ReportAllocs()
			for b.Loop() {
				r.put(benchInstance(0), now)
				snapshot = build()
			}
			b.ReportMetric((heapBytes()-before)/float64(agents), "kept-B/agent")
			runtime.KeepAlive(r)
			runtime.KeepAlive(builder)
			runtime.KeepAlive(snapshot)
		})
	}
}

func benchID(i int) string { return fmt.Sprintf("agent_%06d", i) }

func benchInstance(i int) *instance {
	return &instance{key: instanceKey{benchID(i), "one"}, registration: contract.Registration{
		Match:    contract.Match{Intent: []string{"count_words"}, Domains: []string{"text"}},
		Examples: map[string][]string{"count_words": {"how many words are in this text"}},
		Endpoint: contract.Endpoint{Protocol: contract.ProtocolHTTP, URL: "http://10.0.0.1:9101/"},
	}}
}

// heapBytes returns the size of the reachable heap.
func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
