package capabilities

import (
	"bytes"
	"fmt"
	"testing"
)

// generateRegistry returns a registry file of n agents, which use all keys.
func generateRegistry(n int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nclients:\n")
	for i := range n {
		fmt.Fprintf(&b, `  agent_%[1]d:
    description: "Does thing number %[1]d"
    match:
      intent: ["intent_%[2]d", "intent_%[3]d"]
      domains: ["domain_%[4]d", "domain_%[5]d"]
    examples:
      intent_%[2]d: ["please do the thing number %[1]d", "faça a coisa %[1]d"]
    keywords: ["word%[1]d"]
    constraints: { max_tokens: 8000 }
    endpoint: { protocol: http, url: "http://127.0.0.1:9101/tasks", timeout_ms: 30000 }
    priority: 0
`, i, i%500, (i+1)%500, i%50, (i+7)%50)
	}
	return b.Bytes()
}

// agentCounts returns the sizes of registries. With -short it omits the largest one, which takes
// seconds.
func agentCounts() []int {
	if testing.Short() {
		return []int{10, 1_000}
	}
	return []int{10, 1_000, 100_000}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range agentCounts() {
		b.Run(fmt.Sprintf("%d_agents", n), func(b *testing.B) {
			data := generateRegistry(n)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("f.yaml", data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLint(b *testing.B) {
	for _, n := range agentCounts() {
		b.Run(fmt.Sprintf("%d_agents", n), func(b *testing.B) {
			s, err := Parse("f.yaml", generateRegistry(n))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				Lint(s)
			}
		})
	}
}
