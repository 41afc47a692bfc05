package httptarget_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/dispatch"
	"github.com/caprouter/caprouter/internal/testkit"
)

// Test every status with an idempotent and a non-idempotent agent.
func TestTarget_MapsStatusToOutcome(t *testing.T) {
	const (
		unavailable = contract.TaskAgentUnavailable
		unknown     = contract.TaskOutcomeUnknown
		badResult   = contract.TaskBadResult
		goodHealth  = dispatch.HealthGood
		badHealth   = dispatch.HealthBad
	)
	for _, tc := range []struct {
		status      int
		once, twice want // not idempotent, idempotent
	}{
		{201, want{badResult, "answered 201", 1, true, badHealth}, want{badResult, "answered 201", 1, false, badHealth}},
		{202, want{badResult, "callback", 1, true, badHealth}, want{badResult, "callback", 1, false, badHealth}},
		{204, want{badResult, "answered 204", 1, true, badHealth}, want{badResult, "answered 204", 1, false, badHealth}},
		{206, want{badResult, "answered 206", 1, true, badHealth}, want{badResult, "answered 206", 1, false, badHealth}},
		{304, want{badResult, "redirects are not followed", 1, true, badHealth}, want{badResult, "redirects", 1, false, badHealth}},
		{400, want{unavailable, "refused the task with 400", 1, false, goodHealth}, want{unavailable, "400", 1, false, goodHealth}},
		{401, want{unavailable, "refused the task with 401", 1, false, goodHealth}, want{unavailable, "401", 1, false, goodHealth}},
		{403, want{unavailable, "refused the task with 403", 1, false, goodHealth}, want{unavailable, "403", 1, false, goodHealth}},
		{404, want{unavailable, "refused the task with 404", 1, false, goodHealth}, want{unavailable, "404", 1, false, goodHealth}},
		{408, want{unknown, "answered 408", 1, true, 0}, want{unavailable, "answered 408", 2, false, 0}},
		{409, want{unavailable, "refused the task with 409", 1, false, goodHealth}, want{unavailable, "409", 1, false, goodHealth}},
		{413, want{unavailable, "refused the task with 413", 1, false, goodHealth}, want{unavailable, "413", 1, false, goodHealth}},
		{429, want{unavailable, "answered 429", 1, false, 0}, want{unavailable, "answered 429", 2, false, 0}},
		{500, want{unknown, "answered 500: it may have done the task", 1, true, badHealth}, want{unavailable, "answered 500", 2, false, badHealth}},
		{502, want{unknown, "answered 502", 1, true, badHealth}, want{unavailable, "answered 502", 2, false, badHealth}},
		{503, want{unknown, "answered 503", 1, true, badHealth}, want{unavailable, "answered 503", 2, false, badHealth}},
		{599, want{unknown, "answered 599", 1, true, badHealth}, want{unavailable, "answered 599", 2, false, badHealth}},
		{999, want{unknown, "answered 999", 1, true, badHealth}, want{unavailable, "answered 999", 2, false, badHealth}},
	} {
		for kind, w := range map[string]want{"once": tc.once, "twice": tc.twice} {
			t.Run(fmt.Sprint(tc.status, " ", kind), func(t *testing.T) {
				a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(tc.status)
					if tc.status != 204 && tc.status != 304 {
						_, _ = io.WriteString(w, successBody+"secret of the agent")
					}
				})
				c := newCall(a.URL)
				c.Agent.Endpoint.Idempotent = kind == "twice"
				got := execute(t, newTarget(t), c)
				checkOutcome(t, got, w)
				if len(a.received()) != w.attempts {
					t.Errorf("got the task %d times at the agent, want %d", len(a.received()), w.attempts)
				}
				if got.Err != nil && strings.Contains(got.Err.Detail, "secret") {
					t.Errorf("got detail %q, want none of the agent's body", got.Err.Detail)
				}
			})
		}
	}
}

func TestTarget_DecodesResult(t *testing.T) {
	full := contract.Result{
		TaskID: taskID, Status: contract.ResultPartial,
		Data:    map[string]json.RawMessage{"n": json.RawMessage(`1`), "x": json.RawMessage(`{"deep":[null,true]}`)},
		Logs:    []string{"a", "b"},
		Metrics: map[string]float64{"tokens": 812}, Explanations: []string{"because"},
	}
	for _, tc := range []struct {
		name, body string
		want       contract.Result
	}{
		{"required fields only", `{"status":"success"}`, contract.Result{Status: contract.ResultSuccess}},
		{"a failure", ` {"status":"failure"}` + "\n", contract.Result{Status: contract.ResultFailure}},
		{"everything", `{"task_id":"` + taskID + `","status":"partial","data":{"n":1,"x":{"deep":[null,true]}},"logs":["a","b"],` +
			`"metrics":{"tokens":812},"explanations":["because"]}`, full},
	} {
		for _, encoding := range []string{"", "identity", "gzip", "x-gzip", "GZIP"} {
			t.Run(tc.name+" "+encoding, func(t *testing.T) {
				a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
					body := []byte(tc.body)
					if encoding != "" {
						w.Header().Set("Content-Encoding", encoding)
					}
					if strings.Contains(strings.ToLower(encoding), "gzip") {
						body = gzipped(body)
					}
					_, _ = w.Write(body)
				})
				target := newTarget(t)
				got := execute(t, target, newCall(a.URL))
				execute(t, target, newCall(a.URL)) // reuses the buffers of the first call
				checkOutcome(t, got, want{attempts: 1, health: dispatch.HealthGood})
				if diff := cmp.Diff(&tc.want, got.Result); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func gzipped(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(b)
	_ = w.Close()
	return buf.Bytes()
}

func TestTarget_RejectsInvalidResult(t *testing.T) {
	header := func(encoding, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = io.WriteString(w, body)
		}
	}
	ok := func(body string) http.HandlerFunc { return answering(http.StatusOK, body) }
	zipped := string(gzipped([]byte(successBody)))
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		detail string
	}{
		{"nothing", ok(""), "sent no Result: the reply is not JSON"},
		{"HTML", ok("<!doctype html><title>login</title>"), "sent no Result: the reply is not JSON"},
		{"a list", ok("[]"), "sent no Result: the reply must be an object"},
		{"null", ok("null"), "sent no Result"},
		{"two values", ok(successBody + successBody), "sent no Result: the reply is not JSON"},
		{"truncated JSON", ok(successBody[:20]), "ends too early"},
		{"not UTF-8", ok(`{"status":"success","logs":["` + "\xff" + `"]}`), "invalid UTF-8"},
		{"no status", ok(`{"data":{}}`), "/status is required"},
		{"unknown status", ok(`{"status":"great"}`), "/status must be one of success, failure, partial"},
		{"duplicate status", ok(`{"status":"failure","status":"success"}`), "appears more than once"},
		{"duplicate nested member", ok(`{"status":"success","data":{"a":{"b":1,"b":2}}}`), "appears more than once"},
		{"STATUS", ok(`{"STATUS":"success"}`), "did you mean"},
		{"unknown member", ok(`{"status":"success","verdict":1}`), "unknown member"},
		{"wrong type", ok(`{"status":"success","logs":"one"}`), "/logs: must be an array"},
		{"null status", ok(`{"status":null}`), "/status"},
		{"result of another task", ok(`{"task_id":"other","status":"success"}`), "the Result of another task"},
		{"terminal control characters", ok("{\"status\":\"success\",\"\x1b[2J\u202e\":1}"), "sent no Result"},
		{"long member name", ok(`{"status":"success","` + strings.Repeat("n", 5000) + `":1}`), "unknown member"},
		{"deflate", header("deflate", successBody), "only gzip is understood"},
		{"br", header("br", successBody), "only gzip is understood"},
		{"gzip twice", header("gzip, gzip", string(gzipped([]byte(zipped)))), "only gzip is understood"},
		{"not gzip", header("gzip", successBody), "only gzip is understood"},
		{"gzip with a wrong checksum", header("gzip", zipped[:len(zipped)-8]+"\x00\x00\x00\x00"+zipped[len(zipped)-4:]), "only gzip is understood"},
		{"gzip of garbage", header("gzip", zipped[:10]+"\xff\xff\xff\xff\xff\xff"), "only gzip is understood"},
	} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, idempotent %v", tc.name, twice), func(t *testing.T) {
				a := newAgent(t, tc.answer)
				c := newCall(a.URL)
				c.Agent.Endpoint.Idempotent = twice
				got := execute(t, newTarget(t), c)
				checkOutcome(t, got, want{code: contract.TaskBadResult, detail: tc.detail, attempts: 1, uncertain: !twice, health: dispatch.HealthBad})
				if n := len(got.Err.Detail); n > 250 {
					t.Errorf("got a detail of %d bytes", n)
				}
			})
		}
	}
}

// An incomplete response leads to a second attempt if the agent is idempotent.
func TestTarget_RetriesIncompleteReplyIfIdempotent(t *testing.T) {
	zipped := string(gzipped([]byte(successBody)))
	for name, reply := range map[string]string{
		"by length":      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + successBody,
		"in chunks":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"sta",
		"between chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"sta\r\n",
		"a broken chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"gzip":           "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + zipped[:len(zipped)-9],
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			url := rawAgent(t, func(conn net.Conn, _ int) {
				if readRequest(conn) {
					requests.Add(1)
					_, _ = io.WriteString(conn, reply)
				}
			})
			got := execute(t, newTarget(t), newCall(url))
			checkOutcome(t, got, want{code: contract.TaskBadResult, detail: "breaks off", attempts: 1, uncertain: true, health: dispatch.HealthBad})
			got = execute(t, newTarget(t), newCall(url, idempotent))
			checkOutcome(t, got, want{code: contract.TaskBadResult, detail: "breaks off", attempts: 2, health: dispatch.HealthBad})
			if got := requests.Load(); got != 3 {
				t.Errorf("got %d requests in total, want 1 and 2", got)
			}
		})
	}
}

func TestTarget_RejectsReplyThatIsNotHTTP(t *testing.T) {
	for name, reply := range map[string]string{
		"another protocol":   "220 smtp.example ESMTP\r\n",
		"bad status":         "HTTP/1.1 2x0 OK\r\n\r\n",
		"bad length":         "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
		"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"a header of 1 MB":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"a thousand headers": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Header-Of-Some-Length: value\r\n", 5000) + "\r\n",
		"only 1xx":           strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			url := rawAgent(t, func(conn net.Conn, _ int) {
				if readRequest(conn) {
					_, _ = io.WriteString(conn, reply)
					readUntilClosed(conn)
				}
			})
			got := execute(t, newTarget(t), newCall(url, timeout(5*time.Second)))
			checkOutcome(t, got, want{code: contract.TaskBadResult, detail: "not HTTP", attempts: 1, uncertain: true, health: dispatch.HealthBad})
		})
	}
}

func TestTarget_DoesNotFollowRedirects(t *testing.T) {
	elsewhere := newAgent(t, answering(http.StatusOK, successBody))
	for _, status := range []int{301, 302, 303, 307, 308} {
		a := newAgent(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		got := execute(t, newTarget(t), newCall(a.URL))
		checkOutcome(t, got, want{code: contract.TaskBadResult, detail: "redirects are not followed", attempts: 1, uncertain: true, health: dispatch.HealthBad})
	}
	if got := len(elsewhere.received()); got != 0 {
		t.Errorf("got %d requests at the target of the redirects, want 0", got)
	}
}

// flood writes to w until an error or the limit, and returns the bytes written.
func flood(w io.Writer, chunk []byte, most int64) (written int64) {
	for written < most {
		n, err := w.Write(chunk)
		if written += int64(n); err != nil {
			break
		}
	}
	return written
}

// The agent sends 200 MB: the router stops reading, closes the connection, and uses no more memory
// than for the largest Result.
func TestTarget_BoundsReplySize(t *testing.T) {
	const size = 200 << 20
	spaces := bytes.Repeat([]byte(" "), 64<<10)
	emptyMember := gzipped(nil)
	bomb := gzipped(bytes.Repeat([]byte(" "), 16<<20))
	for _, tc := range []struct {
		name   string
		head   string
		chunk  []byte
		detail string
	}{
		{"announced", fmt.Sprintf("Content-Length: %d\r\n", size), spaces, "sent more than"},
		{"without Content-Length", "Connection: close\r\n", spaces, "sent more than"},
		{"gzip bomb", "Content-Encoding: gzip\r\nConnection: close\r\n", bomb, "sent more than"},
		{"gzip bomb with a small Content-Length", "Content-Encoding: gzip\r\nContent-Length: 1000000\r\n", bytes.Repeat(bomb, 32), "sent more than"},
		{"gzip members without content", "Content-Encoding: gzip\r\nConnection: close\r\n", bytes.Repeat(emptyMember, 1000), "sent more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			written := make(chan int64, 4)
			url := rawAgent(t, func(conn net.Conn, _ int) {
				if readRequest(conn) {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+tc.head+"\r\n")
					written <- flood(conn, tc.chunk, size)
				}
			})
			target := newTarget(t)
			before := allocated()
			got := execute(t, target, newCall(url))
			grown := allocated() - before
			checkOutcome(t, got, want{code: contract.TaskBadResult, detail: tc.detail, attempts: 1, uncertain: true, health: dispatch.HealthBad})
			// 4 MiB are read; the rest fills socket buffers.
			if n := testkit.Receive(t, written); n > 32<<20 {
				t.Errorf("got %d MiB written before the router closed the connection, want at most 32", n>>20)
			}
			// This is the sum of all allocations, including those of the agent, of doubling buffers
			// up to 8 MiB, and of TLS and gzip.
			if grown > 40<<20 {
				t.Errorf("got %d MiB allocated, want at most 40", grown>>20)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A response of the maximum size is accepted; one byte more is not.
func TestTarget_AcceptsReplyOfMaximumSize(t *testing.T) {
	const most = 4 << 20
	for _, encoding := range []string{"", "gzip"} {
		for _, extra := range []int{0, 1} {
			t.Run(fmt.Sprint(encoding, " ", extra), func(t *testing.T) {
				body := []byte(successBody + strings.Repeat(" ", most-len(successBody)+extra))
				if encoding != "" {
					body = gzipped(body)
				}
				a := newAgent(t, func(w http.ResponseWriter, _ *http.Request) {
					if encoding != "" {
						w.Header().Set("Content-Encoding", encoding)
					}
					_, _ = w.Write(body)
				})
				w := want{attempts: 1, health: dispatch.HealthGood}
				if extra > 0 {
					w = want{code: contract.TaskBadResult, detail: "4194304", attempts: 1, uncertain: true, health: dispatch.HealthBad}
				}
				checkOutcome(t, execute(t, newTarget(t), newCall(a.URL)), w)
			})
		}
	}
}

// FuzzReply looks for response bytes that panic, block, or become a result although they are
// invalid.
func FuzzReply(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n" + successBody))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + string(gzipped([]byte(successBody)))))
	f.Add([]byte("HTTP/1.1 202 Accepted\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 99999999999999999999\r\nConnection: close\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 503 x\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"))
	var reply atomic.Pointer[[]byte]
	url := rawAgent(f, func(conn net.Conn, _ int) {
		if readRequest(conn) {
			_, _ = conn.Write(*reply.Load())
		}
	})
	target := newTarget(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		reply.Store(&data)
		got := execute(t, target, newCall(url))
		if (got.Result == nil) == (got.Err == nil) {
			t.Fatalf("got both the result %+v and the error %+v", got.Result, got.Err)
		}
		if got.Result == nil {
			return
		}
		switch got.Result.Status {
		case contract.ResultSuccess, contract.ResultFailure, contract.ResultPartial:
		default:
			t.Errorf("got a result with status %q, want an error", got.Result.Status)
		}
	})
}
