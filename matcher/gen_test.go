package matcher_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/matcher"
)

// population is a generated registry for the benchmarks.
//
// The number of labels grows with the square root of the number of agents (Heaps' law with the
// usual exponent of 0.5), so n agents share 8·√n intents and 2·√n domains:
//
//	agents      10     1k    100k      1M
//	intents     25    252   2,529   8,000
//	domains      6     63     632   2,000
//
// An agent declares 1–4 intents and 1–3 domains. In an even registry all labels are equally
// likely. In a skewed registry the k-th label has the weight 1/(k+9): Zipf's law with a flattened
// head, where 4 % of 1M agents declare the most popular intent. One agent in 50 declares "*", and
// half have a token limit that no query reaches. Each query uses the labels of a random agent, so
// popular labels are more frequent, and every query has a match.
type population struct {
	agents           []*contract.RegistryEntry
	intents, domains []string
	rng              *rand.Rand
	pickIntent       func() string
	pickDomain       func() string
}

func populate(n int, skewed bool) *population {
	p := &population{rng: rand.New(rand.NewPCG(3, 5))}
	root := math.Sqrt(float64(n))
	p.intents = names("intent", int(8*root))
	p.domains = names("domain", int(2*root))
	p.pickIntent, p.pickDomain = p.even(p.intents), p.even(p.domains)
	if skewed {
		p.pickIntent, p.pickDomain = p.zipf(p.intents), p.zipf(p.domains)
	}
	p.agents = make([]*contract.RegistryEntry, n)
	for i := range p.agents {
		a := &contract.RegistryEntry{ID: fmt.Sprintf("agent-%07d", i)}
		a.Match.Intent = draw(1+p.rng.IntN(4), p.pickIntent)
		a.Match.Domains = draw(1+p.rng.IntN(3), p.pickDomain)
		if p.rng.IntN(50) == 0 {
			a.Match.Domains = append(a.Match.Domains, contract.AnyDomain)
		}
		if p.rng.IntN(2) == 0 {
			a.Constraints.MaxTokens = 8000
		}
		p.agents[i] = a
	}
	return p
}

// names returns labels of a typical length.
func names(kind string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s_of_kind_%05d", kind, i)
	}
	return list
}

func draw(n int, pick func() string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = pick()
	}
	return list
}

func (p *population) even(list []string) func() string {
	return func() string { return list[p.rng.IntN(len(list))] }
}

func (p *population) zipf(list []string) func() string {
	z := rand.NewZipf(p.rng, 1.0001, 10, uint64(len(list)-1))
	return func() string { return list[z.Uint64()] }
}

// queries draws n queries with this number of domains: an intent and a domain of one agent, and
// domains of other agents.
func (p *population) queries(n, domains int, caller *contract.Caller) []matcher.Query {
	list := make([]matcher.Query, n)
	for i := range list {
		m := p.agents[p.rng.IntN(len(p.agents))].Match
		q := matcher.Query{Intent: m.Intent[p.rng.IntN(len(m.Intent))], Domains: m.Domains[:1:1], PromptBytes: 400, Caller: caller, Confidence: 1}
		for len(q.Domains) < domains {
			q.Domains = append(q.Domains, p.pickDomain())
		}
		list[i] = q
	}
	return list
}
