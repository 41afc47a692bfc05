package matcher_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

const threshold = 65

// benchmarkIndex is a registry with queries. Every agent has a live state, as with a dispatcher.
type benchmarkIndex struct {
	*population
	index   *matcher.Index
	live    matcher.Live
	queries []matcher.Query
}

func newBenchmarkIndex(n int, skewed bool, threshold, domains int, caller *contract.Caller) *benchmarkIndex {
	p := populate(n, skewed)
	s := &benchmarkIndex{
		population: p,
		index:      matcher.Build(p.agents, matcher.DefaultWeights(), threshold),
		live:       make(matcher.Live, n),
		queries:    p.queries(1024, domains, caller),
	}
	for i := range s.live {
		s.live[i] = &matcher.LiveState{}
	}
	return s
}

// match runs all queries in turn and reports the mean number of matching agents.
func (s *benchmarkIndex) match(b *testing.B) {
	var res matcher.Result
	hits, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		s.index.Match(&s.queries[i%len(s.queries)], s.live, &res)
		hits += res.Total + res.Hidden
		i++
	}
	b.ReportMetric(float64(hits)/float64(i), "hits/op")
}

// loop is match with the loop of the source document.
func (s *benchmarkIndex) loop(b *testing.B) {
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		matchCandidates(s.agents, &s.queries[i%len(s.queries)], 0.65, 2)
		i++
	}
}

type scored struct {
	agent   *contract.RegistryEntry
	score   float64
	domains int
}

// matchCandidates is match_candidates of the source document: score every agent, keep those that
// reach the threshold, sort, and cut to topk. It has no callers, live states or "*".
func matchCandidates(agents []*contract.RegistryEntry, q *matcher.Query, threshold float64, topk int) []scored {
	var candidates []scored
	for _, a := range agents {
		c := scored{agent: a}
		if slices.Contains(a.Match.Intent, q.Intent) {
			c.score += 0.5
		}
		for _, d := range q.Domains {
			if slices.Contains(a.Match.Domains, d) {
				c.domains++
			}
		}
		c.score += min(0.3*float64(c.domains), 0.6)
		if a.Constraints.MaxTokens > 0 && (q.PromptBytes+3)/4 > a.Constraints.MaxTokens {
			c.score -= 0.2
		}
		if c.score >= threshold {
			candidates = append(candidates, c)
		}
	}
	slices.SortFunc(candidates, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.domains, a.domains), cmp.Compare(a.agent.ID, b.agent.ID))
	})
	return candidates[:min(topk, len(candidates))]
}

func perOp(b *testing.B) float64 { return float64(b.Elapsed().Nanoseconds()) / float64(b.N) }

var vocabularies = []struct {
	name   string
	skewed bool
}{{"even", false}, {"skewed", true}}

// agentCounts returns the sizes of registries. With -short it omits the largest ones, which take
// seconds to build.
func agentCounts(counts ...int) []int {
	return slices.DeleteFunc(counts, func(n int) bool { return testing.Short() && n > 100_000 })
}

// BenchmarkMatch compares queries for one domain with the loop.
func BenchmarkMatch(b *testing.B) {
	for _, v := range vocabularies {
		for _, n := range agentCounts(10, 1_000, 100_000, 1_000_000) {
			b.Run(fmt.Sprintf("%s/agents=%d", v.name, n), func(b *testing.B) {
				s := newBenchmarkIndex(n, v.skewed, threshold, 1, everyone)
				loop := 0.0
				b.Run("loop", func(b *testing.B) {
					s.loop(b)
					loop = perOp(b)
				})
				b.Run("index", func(b *testing.B) {
					s.match(b)
					b.ReportMetric(loop/perOp(b), "x-loop")
				})
			})
		}
	}
}

// BenchmarkMatchDomains matches queries for one to three domains.
func BenchmarkMatchDomains(b *testing.B) {
	for _, v := range vocabularies {
		for _, n := range agentCounts(1_000, 100_000, 1_000_000) {
			for domains := 1; domains <= contract.MaxDomains; domains++ {
				b.Run(fmt.Sprintf("%s/agents=%d/domains=%d", v.name, n, domains), func(b *testing.B) {
					newBenchmarkIndex(n, v.skewed, threshold, domains, everyone).match(b)
				})
			}
		}
	}
}

// BenchmarkMatchThree has three matching agents among a growing number of others: the cost must not
// depend on the size of the registry.
func BenchmarkMatchThree(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("agents=%d", n), func(b *testing.B) {
			s := newBenchmarkIndex(n-3, false, threshold, 1, everyone)
			for i := range 3 {
				s.agents = append(s.agents, &contract.RegistryEntry{
					ID:    fmt.Sprint("match-", i),
					Match: contract.Match{Intent: []string{"the_intent"}, Domains: []string{"the_domain"}},
				})
				s.live = append(s.live, &matcher.LiveState{})
			}
			s.index = matcher.Build(s.agents, matcher.DefaultWeights(), threshold)
			s.queries = []matcher.Query{{
				Intent: "the_intent", Domains: []string{"the_domain"}, PromptBytes: 400, Caller: everyone, Confidence: 1,
			}}
			s.match(b)
		})
	}
}

// BenchmarkMatchPaths measures less frequent paths with 100k agents.
func BenchmarkMatchPaths(b *testing.B) {
	few := &contract.Caller{Subject: "few"}
	for i := range 10 {
		few.Scopes = append(few.Scopes, fmt.Sprintf("agent:agent-%07d", i*1000))
	}
	for _, path := range []struct {
		name      string
		threshold int
		caller    *contract.Caller
	}{
		{"usual", threshold, everyone},
		{"caller of ten agents", threshold, few},
		{"intent alone reaches the threshold", 50, everyone},
		{"domains alone reach the threshold", 30, everyone},
		{"every agent matches", 0, everyone},
	} {
		for _, v := range vocabularies {
			b.Run(fmt.Sprintf("%s/%s", path.name, v.name), func(b *testing.B) {
				newBenchmarkIndex(100_000, v.skewed, path.threshold, 2, path.caller).match(b)
			})
		}
	}
	b.Run("nearest", func(b *testing.B) {
		s := newBenchmarkIndex(100_000, true, threshold, 2, everyone)
		var res matcher.Result
		i := 0
		for b.Loop() {
			s.index.Nearest(&s.queries[i%len(s.queries)], s.live, &res)
			i++
		}
	})
}

// BenchmarkDescribe renders the best candidate, as for each decision.
func BenchmarkDescribe(b *testing.B) {
	s := newBenchmarkIndex(1_000, true, threshold, 1, everyone)
	var res matcher.Result
	s.index.Match(&s.queries[0], s.live, &res)
	b.ReportAllocs()
	for b.Loop() {
		s.index.Describe(&res.Candidates[0], &s.queries[0], s.live)
	}
}

// BenchmarkBuild reports the size of an index for each agent. B/op is the sum of all allocations
// and an upper bound of the peak.
func BenchmarkBuild(b *testing.B) {
	for _, v := range vocabularies {
		for _, n := range agentCounts(1_000, 100_000, 1_000_000) {
			b.Run(fmt.Sprintf("%s/agents=%d", v.name, n), func(b *testing.B) {
				p := populate(n, v.skewed)
				before := heapBytes()
				x := matcher.Build(p.agents, matcher.DefaultWeights(), threshold)
				kept := heapBytes() - before
				runtime.KeepAlive(x)
				b.ReportAllocs()
				for b.Loop() {
					matcher.Build(p.agents, matcher.DefaultWeights(), threshold)
				}
				b.ReportMetric(kept/float64(n), "kept-B/agent")
			})
		}
	}
}

// heapBytes returns the size of the reachable heap.
func heapBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
