package main

import (
	"strings"

	"github.com/google/pprof/profile"
)

// category is a kind of work that CPU time is spent on.
type category string

const (
	categoryClient    category = "client"
	categoryJSON      category = "JSON"
	categoryServer    category = "server"
	categoryJetStream category = "JetStream"
	categorySigning   category = "signing"
	categoryFsync     category = "fsync"
	categoryRecords   category = "records"
	categoryContents  category = "contents"
	categoryClassify  category = "classify"
	categoryTelemetry category = "logs"
	categoryGC        category = "GC"
	categoryScheduler category = "sched"
	categoryRest      category = "rest"
)

// categories returns the categories in the order of the table, each with its meaning.
func categories() []struct{ name, meaning category } {
	return []struct{ name, meaning category }{
		{categoryClient, "HTTP client"},
		{categoryJSON, "encoding and decoding of JSON"},
		{categoryServer, "HTTP server"},
		{categoryJetStream, "nats.go and nats-server"},
		{categorySigning, "signatures and tokens"},
		{categoryFsync, "fsync"},
		{categoryRecords, "audit log, requests and their history, tables of the store"},
		{categoryContents, "encryption and hashes of contents"},
		{categoryClassify, "classification, matching, masking"},
		{categoryTelemetry, "log, metrics, tracing"},
		{categoryGC, "garbage collection"},
		{categoryScheduler, "goroutines, timers, network poller"},
		{categoryRest, "everything else"},
	}
}

// rule puts a function into a category if its name begins with one of the prefixes.
type rule struct {
	category category
	prefixes []string
}

const modulePath = "github.com/caprouter/caprouter/"

// rules are tried in this order. If no rule names a function, such as an allocation, a
// system call or one of the packages io and sort, its caller decides.
func rules() []rule {
	return []rule{
		{categoryGC, []string{"runtime.gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.sweepone", "runtime.(*sweepLocked)", "runtime.wbBufFlush", "runtime.scanstack", "runtime.markroot"}},
		{categoryScheduler, []string{
			"runtime.schedule", "runtime.findRunnable", "runtime.futex", "runtime.mcall", "runtime.park_m", "runtime.mstart", "runtime.sysmon", "runtime.netpoll",
			"runtime.ready", "runtime.wakep", "runtime.startm", "runtime.goexit0", "runtime.goschedImpl", "runtime.gopark", "runtime.usleep", "runtime.osyield",
			"runtime.(*timer)", "runtime.(*timers)", "runtime.exitsyscall", "runtime.entersyscall", "runtime.reentersyscall", "runtime.newproc", "runtime.runqgrab",
		}},
		{categoryFsync, []string{"syscall.Fsync", "syscall.Fdatasync", "internal/poll.(*FD).Fsync", "os.(*File).Sync", "golang.org/x/sys/unix.Fsync", "golang.org/x/sys/unix.Fdatasync"}},
		{categoryJSON, []string{"encoding/json", "github.com/go-json-experiment/json", modulePath + "internal/strictjson"}},
		{categorySigning, []string{"crypto/ed25519", "crypto/ecdsa", "crypto/internal/fips140/ed25519", "crypto/internal/fips140/ecdsa", "crypto/internal/fips140/edwards25519", "github.com/golang-jwt/", modulePath + "internal/auth"}},
		{categoryContents, []string{"crypto/aes", "crypto/cipher", "crypto/sha256", "crypto/hmac", "crypto/internal/fips140/aes", "crypto/internal/fips140/sha256", "crypto/internal/fips140/hmac", modulePath + "internal/contentkey"}},
		{categoryJetStream, []string{"github.com/nats-io/", "github.com/minio/highwayhash"}},
		{categoryRecords, []string{modulePath + "internal/audit", modulePath + "internal/store", modulePath + "internal/history", modulePath + "internal/requests"}},
		{categoryTelemetry, []string{"log/slog", "github.com/prometheus/", "go.opentelemetry.io/", modulePath + "internal/telemetry", modulePath + "internal/decisionlog"}},
		{categoryClassify, []string{"regexp", modulePath + "classifier", modulePath + "matcher", modulePath + "internal/lexical", modulePath + "internal/redact", modulePath + "internal/llm", modulePath + "internal/visibility"}},
		{categoryClient, []string{
			"net/http.(*Client)", "net/http.(*Transport)", "net/http.(*persistConn)", "net/http.(*wantConn)", "net/http.(*bodyEOFSignal)", "net/http.(*Request).write", "net/http.ReadResponse", "net/http.NewRequest",
			modulePath + "dispatch", modulePath + "internal/egress",
		}},
		{categoryServer, []string{
			"net/http.(*conn)", "net/http.(*connReader)", "net/http.(*Server)", "net/http.(*response)", "net/http.(*chunkWriter)", "net/http.serverHandler", "net/http.readRequest", "net/http.checkConnErrorWriter",
			"github.com/labstack/echo", modulePath + "internal/httpserver", modulePath + "internal/rest",
		}},
		{categoryRest, []string{modulePath}},
	}
}

// categorize returns the category of a stack of functions, the innermost first: that of
// the first function that a rule names.
func categorize(stack []string, rules []rule) category {
	for _, function := range stack {
		for _, r := range rules {
			for _, prefix := range r.prefixes {
				if strings.HasPrefix(function, prefix) {
					return r.category
				}
			}
		}
	}
	return categoryRest
}

// sumByCategory returns the CPU time of a profile by category, in nanoseconds.
func sumByCategory(p *profile.Profile) map[category]int64 {
	sums, rules := map[category]int64{}, rules()
	for _, s := range p.Sample {
		sums[categorize(functionsOf(s), rules)] += s.Value[len(s.Value)-1]
	}
	return sums
}

// functionsOf returns the stack of a sample, the innermost function first.
func functionsOf(s *profile.Sample) []string {
	var stack []string
	for _, location := range s.Location {
		for _, line := range location.Line { // inlined functions precede their callers
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
	}
	return stack
}
