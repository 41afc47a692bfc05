package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

func TestCategorize_InnermostNamedFunctionDecides(t *testing.T) {
	const server = "net/http.(*conn).serve"
	for name, c := range map[string]struct {
		stack []string
		want  category
	}{
		"allocation in the encoder": {
			[]string{"runtime.nextFreeFast", "runtime.mallocgc", "runtime.growslice", "github.com/go-json-experiment/json/jsontext.AppendQuote", modulePath + "internal/audit.(*Log).Append", server}, categoryJSON,
		},
		"allocation in the audit log": {
			[]string{"runtime.memclrNoHeapPointers", "runtime.mallocgc", "runtime.makeslice", modulePath + "internal/audit.(*Log).Append", server}, categoryRecords,
		},
		"copy into a batch of the engine": {
			[]string{"runtime.memmove", "github.com/nats-io/nats%2ego.(*Conn).publish", modulePath + "internal/store.(*Store).publish", server}, categoryJetStream,
		},
		"collection on allocation": {
			[]string{"runtime.scanobject", "runtime.gcDrainN", "runtime.gcAssistAlloc", "runtime.mallocgc", "encoding/json.Marshal", server}, categoryGC,
		},
		"collection in the background": {
			[]string{"runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker.func2", "runtime.systemstack", "runtime.gcBgMarkWorker"}, categoryGC,
		},
		"sweep on allocation": {
			[]string{"runtime.(*sweepLocked).sweep", "runtime.(*mcentral).cacheSpan", "runtime.mallocgc", "fmt.Sprintf", server}, categoryGC,
		},
		"search for work": {
			[]string{"internal/runtime/syscall/linux.Syscall6", "runtime.netpoll", "runtime.findRunnable", "runtime.schedule", "runtime.park_m", "runtime.mcall"}, categoryScheduler,
		},
		"waking another goroutine": {
			[]string{"runtime.futex", "runtime.futexwakeup", "runtime.ready", "runtime.chansend", "github.com/nats-io/nats-server/v2/server.(*ipQueue).push"}, categoryScheduler,
		},
		"write by the server": {
			[]string{"internal/runtime/syscall/linux.Syscall6", "syscall.write", "internal/poll.(*FD).Write", "net.(*conn).Write", "net/http.checkConnErrorWriter.Write", "bufio.(*Writer).Flush", server}, categoryServer,
		},
		"write by the client": {
			[]string{"internal/runtime/syscall/linux.Syscall6", "syscall.write", "net.(*conn).Write", "net/http.persistConnWriter.Write", "bufio.(*Writer).Flush", "net/http.(*persistConn).writeLoop"}, categoryClient,
		},
		"fsync of the engine": {
			[]string{"syscall.Syscall", "syscall.Fsync", "internal/poll.(*FD).Fsync", "os.(*File).Sync", "github.com/nats-io/nats-server/v2/server.(*msgBlock).flush"}, categoryFsync,
		},
		"hash of a signature": {
			[]string{"crypto/internal/fips140/sha512.blockAVX2", "crypto/internal/fips140/ed25519.signWithDom", "github.com/golang-jwt/jwt/v5.(*SigningMethodEd25519).Sign", modulePath + "internal/auth/issuance.(*Issuer).TaskToken", server}, categorySigning,
		},
		"hash of a content": {
			[]string{"crypto/internal/fips140/sha256.blockSHANI", "crypto/sha256.Sum256", modulePath + "internal/audit.sealContent", server}, categoryContents,
		},
		"masking": {
			[]string{"strings.IndexByte", modulePath + "internal/redact.findAll", modulePath + "router.(*Router).Route", server}, categoryClassify,
		},
		"a log line": {
			[]string{"strconv.AppendQuote", "log/slog.(*handleState).appendString", modulePath + "internal/decisionlog.Write", server}, categoryTelemetry,
		},
		"router in the server": {
			[]string{"runtime.mapassign", "maps.Copy", modulePath + "router.(*Router).Route", modulePath + "internal/rest.route", server}, categoryRest,
		},
		"handler without a rule": {
			[]string{"io.Copy", "main.newGateway.func1", server}, categoryServer,
		},
		"unknown": {[]string{"runtime.sigprof", "runtime.goexit"}, categoryRest},
		"empty":   {nil, categoryRest},
	} {
		if got := categorize(c.stack, rules()); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestSumByCategory_ReadsInlinedFunctionsFirst(t *testing.T) {
	function := func(name string) profile.Line { return profile.Line{Function: &profile.Function{Name: name}} }
	inlined := &profile.Location{Line: []profile.Line{function("encoding/json.isSpace"), function(modulePath + "internal/store.decode")}}
	caller := &profile.Location{Line: []profile.Line{function("net/http.(*conn).serve")}}
	got := sumByCategory(&profile.Profile{Sample: []*profile.Sample{
		{Location: []*profile.Location{inlined, caller}, Value: []int64{2, 20}},
		{Location: []*profile.Location{caller}, Value: []int64{1, 10}},
		{Location: []*profile.Location{caller}, Value: []int64{3, 30}},
	}})
	if diff := cmp.Diff(map[category]int64{categoryJSON: 20, categoryServer: 40}, got); diff != "" {
		t.Errorf("got CPU time by category (-want +got):\n%s", diff)
	}
}

func TestCategories_NameEveryRule(t *testing.T) {
	named := map[category]bool{}
	for _, c := range categories() {
		named[c.name] = true
	}
	for _, r := range rules() {
		if !named[r.category] {
			t.Errorf("got category %s, want one of the table", r.category)
		}
	}
}
