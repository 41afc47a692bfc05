// Package fakeotlp is a receiver of spans for tests: a server of OTLP over HTTP that stores the
// received spans.
//
//	receiver := fakeotlp.Start(t)
//	// run the code under test, with receiver.URL as its endpoint
//	tree := receiver.Tree(traceID)
package fakeotlp

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Receiver is a running receiver. Its methods may be called from any goroutine.
type Receiver struct {
	URL string

	mu       sync.Mutex
	status   int
	requests int
	headers  http.Header // of the last request
	raw      bytes.Buffer
	spans    []*trace.Span
}

// Start starts a receiver that stops when the test ends.
func Start(t testing.TB) *Receiver {
	r := &Receiver{status: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Reject sets the status of further replies. A reply that is an error repeats the headers
// of the request.
func (r *Receiver) Reject(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var export coltrace.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &export)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.headers = req.Header
	switch {
	case err != nil || req.URL.Path != "/v1/traces" || req.Method != http.MethodPost:
		http.Error(w, "this is no request of OTLP", http.StatusBadRequest)
		return
	case r.status != http.StatusOK:
		http.Error(w, fmt.Sprint(req.Header), r.status)
		return
	}
	r.raw.Write(body)
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Requests returns the number of requests.
func (r *Receiver) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// Header returns a header of the last request.
func (r *Receiver) Header(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers.Get(name)
}

// Count returns the number of spans that were accepted.
func (r *Receiver) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.spans)
}

// Raw returns all accepted requests, as they were encoded.
func (r *Receiver) Raw() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raw.String()
}

// LastSpanID returns the id of the last span of a trace with this name, "" = none.
func (r *Receiver) LastSpanID(traceID, name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Backward(r.spans) {
		if hex.EncodeToString(s.GetTraceId()) == traceID && s.GetName() == name {
			return hex.EncodeToString(s.GetSpanId())
		}
	}
	return ""
}

// Has reports whether the trace has a span with the name.
func (r *Receiver) Has(traceID, name string) bool { return r.LastSpanID(traceID, name) != "" }

// Tree describes a trace: a line for each span with its kind, status and attributes,
// below that of its parent, in the order of their start. Values that differ from run to
// run are replaced. Parents that were not received are lines without a name.
func (r *Receiver) Tree(traceID string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	children := map[string][]*trace.Span{}
	names := map[string]bool{}
	for _, s := range r.spans {
		if hex.EncodeToString(s.GetTraceId()) == traceID {
			children[string(s.GetParentSpanId())] = append(children[string(s.GetParentSpanId())], s)
			names[string(s.GetSpanId())] = true
		}
	}
	var tree strings.Builder
	for parent := range children {
		if parent == "" {
			writeTree(&tree, children, parent, 0)
		} else if !names[parent] {
			fmt.Fprintf(&tree, "(%s)\n", hex.EncodeToString([]byte(parent)))
			writeTree(&tree, children, parent, 1)
		}
	}
	return tree.String()
}

func writeTree(tree *strings.Builder, children map[string][]*trace.Span, parent string, depth int) {
	list := children[parent]
	slices.SortStableFunc(list, func(a, b *trace.Span) int { return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano()) })
	for _, s := range list {
		kind := strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_"))
		fmt.Fprintf(tree, "%s%s (%s)", strings.Repeat("  ", depth), s.GetName(), kind)
		if s.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR {
			tree.WriteString(" error")
		}
		attributes := make([]string, len(s.GetAttributes()))
		for i, a := range s.GetAttributes() {
			attributes[i] = " " + a.GetKey() + "=" + describe(a)
		}
		slices.Sort(attributes)
		fmt.Fprintln(tree, strings.Join(attributes, ""))
		writeTree(tree, children, string(s.GetSpanId()), depth+1)
	}
}

func describe(a *common.KeyValue) string {
	if a.GetKey() == "caprouter.request.id" {
		return "…"
	}
	if i, ok := a.GetValue().GetValue().(*common.AnyValue_IntValue); ok {
		return fmt.Sprint(i.IntValue)
	}
	return a.GetValue().GetStringValue()
}
