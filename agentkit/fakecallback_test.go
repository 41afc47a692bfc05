package agentkit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

const resultURL = "http://router.example/api/v1/tasks/" + taskID + "/result"

// callbackPost is one request that an agent sent to a callback URL.
type callbackPost struct {
	URL, Token string
	Body       string
	At         time.Duration // since the server was created
}

// fakeCallbackServer is a router that receives callbacks, without a network.
type fakeCallbackServer struct {
	router *fakeRouter
	began  time.Time

	mu     sync.Mutex
	posts  []callbackPost
	answer func(n int, r *http.Request) (*http.Response, error) // n counts from 0; nil = 200
}

func newFakeCallbackServer() *fakeCallbackServer {
	return &fakeCallbackServer{router: newKeyOnly(), began: time.Now()}
}

func (d *fakeCallbackServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return answer(http.StatusOK, `{"keys":[`+d.router.jwk("k1")+`]}`), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	n, reply := len(d.posts), d.answer
	d.posts = append(d.posts, callbackPost{
		r.URL.String(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), string(body), time.Since(d.began),
	})
	d.mu.Unlock()
	if reply == nil {
		return answer(http.StatusOK, ""), nil
	}
	return reply(n, r)
}

func (d *fakeCallbackServer) received() []callbackPost {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]callbackPost(nil), d.posts...)
}

func (d *fakeCallbackServer) agent(t testing.TB, log io.Writer, work agentkit.Work, change ...func(*agentkit.Config)) *agentkit.Agent {
	t.Helper()
	return newAgent(t, nil, log, work, append([]func(*agentkit.Config){func(c *agentkit.Config) {
		c.JWKSURL, c.Client = "http://router.example/.well-known/jwks.json", &http.Client{Transport: d}
	}}, change...)...)
}

// task returns a task whose callback is this server.
func (d *fakeCallbackServer) task() object {
	return validTask().with("callback", object{"url": resultURL, "token": "task-token"})
}

func (d *fakeCallbackServer) post(task object) *http.Request {
	return post("/", d.router.token(validClaims()), task.json())
}

// statuses answers the posts with these statuses in turn, and repeats the last one.
func statuses(codes ...int) func(int, *http.Request) (*http.Response, error) {
	return func(n int, _ *http.Request) (*http.Response, error) {
		return answer(codes[min(n, len(codes)-1)], ""), nil
	}
}

func checkAccepted(t testing.TB, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != http.StatusAccepted || w.Body.Len() != 0 {
		t.Errorf("got response %d %q, want 202 without a body", w.Code, w.Body)
	}
}

// slow accepts asynchronously and works for ten seconds.
func slow(ctx context.Context, _ contract.Task) (contract.Result, error) {
	agentkit.AcceptAsync(ctx)
	select {
	case <-time.After(10 * time.Second):
		return agentkit.Answer("done"), nil
	case <-ctx.Done():
		return contract.Result{}, ctx.Err()
	}
}

const doneBody = `{"task_id":"` + taskID + `","status":"success","data":{"answer":"done"}}`
