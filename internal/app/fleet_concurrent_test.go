package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/rest"
	"github.com/caprouter/caprouter/internal/testkit"
)

// For any concurrent changes by agents, operators and reloads, GET /agents returns the acknowledged
// state, and no task stays in flight.
func TestFleet_KeepsAcknowledgedStateUnderConcurrency(t *testing.T) {
	t.Parallel()
	const workers, operations = 8, 40
	url, _ := countingAgent(t)
	var file strings.Builder
	file.WriteString("clients:\n" + entry("counter", "count_words", "prose", url) + "grants:\n")
	for w := range workers {
		fmt.Fprintf(&file, "  agent%d: { intents: [count_words], domains: [prose] }\n", w)
	}
	s := startServer(t, file.String(), func(c *config.Config) { c.Limits.Register.RPS = "0" })
	want := make([]map[string]contract.AgentState, workers) // by agent and instance
	off := make([]bool, workers)
	var wg sync.WaitGroup
	for w := range workers {
		want[w] = map[string]contract.AgentState{}
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			id, path := fmt.Sprint("agent", w), fmt.Sprint("/api/v1/agents/agent", w)
			for n := range operations {
				if w == 0 && n%25 == 0 {
					s.write(fmt.Sprintf("%sfallback: { max_tokens: %d }\n", file.String(), 100+n))
					if err := s.core.file.Reload(); err != nil {
						t.Error(err)
					}
				}
				name := fmt.Sprint("i", rng.IntN(3))
				body := fmt.Sprintf(`{"instance":%q}`, name)
				_, known := want[w][name]
				expect := http.StatusOK
				var got apiResponse
				switch op := rng.IntN(8); op {
				case 0, 1:
					s.register(id, name, url, func(r *contract.Registration) {
						r.LeaseTTLS = contract.MaxLeaseTTLS
						if op == 1 {
							r.Examples = map[string][]string{"count_words": {fmt.Sprint("count words number ", rng.IntN(5))}}
						}
					})
					want[w][name] = contract.AgentActive
					continue
				case 2:
					got = s.do(call{method: "POST", path: path + "/heartbeat", body: body})
				case 3:
					if got = s.do(call{method: "POST", path: path + "/drain", body: body}); known {
						want[w][name] = contract.AgentDraining
					}
				case 4:
					expect = http.StatusNoContent
					got = s.do(call{method: "DELETE", path: path + "?instance=" + name})
					delete(want[w], name)
				case 5:
					off[w] = !off[w]
					action := map[bool]string{true: "/disable", false: "/enable"}[off[w]]
					got = s.do(call{method: "POST", path: path + action})
					if got.status == http.StatusNotFound {
						off[w] = false
					}
					continue
				default:
					s.routeProse()
					continue
				}
				if !known {
					expect = http.StatusNotFound
				}
				if got.status != expect {
					t.Errorf("%s %s: got %d %s, want %d", id, name, got.status, got.body, expect)
				}
			}
		})
	}
	wg.Wait()
	var wantText strings.Builder
	for w := range workers {
		for i := range 3 {
			if state, ok := want[w][fmt.Sprint("i", i)]; ok {
				fmt.Fprintln(&wantText, "agent", w, i, state, off[w])
			}
		}
	}
	gotText := ""
	t.Cleanup(func() {
		if diff := cmp.Diff(wantText.String(), gotText); diff != "" {
			t.Errorf("agents (-want +got):\n%s", diff)
		}
	})
	testkit.Eventually(t, "the acknowledged state is listed", func() bool {
		var list rest.AgentList
		if err := json.Unmarshal(s.do(call{method: "GET", path: "/api/v1/agents"}).body, &list); err != nil {
			t.Fatal(err)
		}
		gotText = ""
		for _, a := range list.Agents {
			for _, i := range a.Instances {
				gotText += fmt.Sprintln("agent", a.ID[5:], i.Name[1:], i.State, a.State == contract.AgentDisabled)
			}
			if a.InFlight != 0 {
				return false
			}
		}
		return gotText == wantText.String()
	})
}
