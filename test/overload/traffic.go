package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
)

// operation is one way to make the router work and store something.
type operation struct {
	name    string
	request func(t *tenant, n int) []byte
}

// operations returns one operation for each part of the store, and the others that
// cost the router much. n makes each request different.
func operations() []operation {
	post := func(t *tenant, n int, header, prompt, rest string) []byte {
		return t.request(n, "POST", routePath, header, `{"content":{"prompt":"`+prompt+`"`+rest)
	}
	review := func(n, kilobytes int) string {
		return fmt.Sprintf("code review of python module %d", n) + strings.Repeat(" of the python module", kilobytes<<10/21)
	}
	return []operation{
		{"route", func(t *tenant, n int) []byte { return post(t, n, "", review(n, 60), "}}") }},
		{"async", func(t *tenant, n int) []byte {
			return post(t, n, "Prefer: respond-async\r\n", review(n, 8), fmt.Sprintf(`,"inputs":{"text":%q}}}`, strings.Repeat("x", 64<<10)))
		}},
		{"idempotency keys", func(t *tenant, n int) []byte {
			return post(t, n, fmt.Sprintf("Idempotency-Key: %s-%d-%0200d\r\n", t.name, n, n), review(n, 0), "}}")
		}},
		{"sessions", func(t *tenant, n int) []byte {
			return post(t, n, "", review(n, 4), fmt.Sprintf(`},"session_id":"%s-%d"}`, t.name, n))
		}},
		{"tickets", func(t *tenant, n int) []byte {
			return post(t, n, "", unservedPrompt(n)+strings.Repeat(" please", 1000), "}}")
		}},
		{"lint", func(t *tenant, n int) []byte {
			return t.request(n, "POST", "/api/v1/registry/lint", "Content-Type: application/yaml\r\n", largeRegistry())
		}},
		{"event streams", func(t *tenant, n int) []byte {
			return post(t, n, "Accept: text/event-stream\r\n", review(n, 1), "}}")
		}},
	}
}

// unservedPrompt returns a text that no agent serves. Texts of different numbers have
// few words in common, so that they open tickets of their own.
func unservedPrompt(n int) string {
	var words []string
	for i := range 8 {
		words = append(words, fmt.Sprintf("zq%dx%d", (n*8+i)%9973, n%89))
	}
	return strings.Join(words, " ")
}

// largeRegistry returns a valid registry with many agents and examples.
func largeRegistry() string {
	var text strings.Builder
	text.WriteString("version: 1\nclients:\n")
	for i := range 100 {
		fmt.Fprintf(&text, `  agent_%[1]d:
    match: { intent: [do_%[1]d], domains: [subject_%[1]d] }
    endpoint: { protocol: http, url: "http://127.0.0.1:1/" }
    examples: { do_%[1]d: ["please do the work number %[1]d", "work on subject %[1]d"] }
`, i)
	}
	return text.String()
}

// traffic is what a tenant sends with each operation at the same time.
type traffic struct {
	tenant     *tenant
	operations []operation
	pause      time.Duration // after each request
	failures   *failureLog
	next       atomic.Int64

	mu     sync.Mutex
	counts map[string]*trafficCount // by operation
}

// trafficCount counts the answers to one operation.
type trafficCount struct{ accepted, rejected int }

// newTraffic selects the operations with one of the names, or all.
func newTraffic(t *tenant, names string, pause time.Duration, failures *failureLog) *traffic {
	selected := slices.DeleteFunc(operations(), func(op operation) bool {
		return names != "" && !slices.Contains(strings.Split(names, ","), op.name)
	})
	return &traffic{tenant: t, operations: selected, pause: pause, failures: failures, counts: map[string]*trafficCount{}}
}

// run sends requests with a number of workers per operation until ctx ends.
func (f *traffic) run(ctx context.Context, workers int) {
	n := workers * len(f.operations)
	run.ForEach(ctx, n, n, func(ctx context.Context, i int) {
		l := &connection{addr: f.tenant.addr}
		defer l.close()
		for ctx.Err() == nil {
			op := f.operations[i%len(f.operations)]
			r, err := l.roundTrip(ctx, op.request(f.tenant, int(f.next.Add(1))))
			switch {
			case ctx.Err() != nil:
			case err != nil:
				f.failures.record("%s of tenant %s: %v", op.name, f.tenant.name, err)
			default:
				f.count(op.name, r)
			}
			resilience.Sleep(ctx, f.pause)
		}
	})
}

func (f *traffic) count(name string, r response) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts[name]
	if c == nil {
		c = &trafficCount{}
		f.counts[name] = c
	}
	switch r.status {
	case http.StatusOK, http.StatusAccepted:
		c.accepted++
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		c.rejected++
	default:
		f.failures.record("%s of tenant %s: %d: %.300s", name, f.tenant.name, r.status, r.body)
	}
}

// printCounts prints how many requests of each operation were accepted and rejected.
func (f *traffic) printCounts(out io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		fmt.Fprintf(out, "%s %d + %d, ", name, f.counts[name].accepted, f.counts[name].rejected)
	}
	fmt.Fprintln(out, "accepted + rejected")
}
