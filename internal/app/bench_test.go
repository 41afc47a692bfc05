package app

import (
	"testing"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/router"
)

// BenchmarkHandle is the decision path without HTTP: a dry run, and a request
// with its log line and metrics whose agent names no endpoint. Whole processes
// are measured by test/bench.
func BenchmarkHandle(b *testing.B) {
	for name, dryRun := range map[string]bool{"dry run": true, "with log and metrics": false} {
		b.Run(name, func(b *testing.B) {
			signer, err := auth.NewSigner()
			if err != nil {
				b.Fatal(err)
			}
			c, err := newCore(b.Context(), DefaultConfig(), Options{LogOutput: discard{}, LookupEnv: noEnv}, signer, noStore)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.closeResources(b.Context()) }()
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
				if _, err := c.router.Handle(b.Context(), &req, LocalCaller()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// discard takes the log like a file would, without the write.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
