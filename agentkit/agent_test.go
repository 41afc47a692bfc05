package agentkit_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func TestNew_RejectsInvalidConfig(t *testing.T) {
	good := agentkit.Config{AgentID: "word_counter", JWKSURL: "https://router.example/.well-known/jwks.json"}
	for _, tc := range []struct {
		name   string
		change func(*agentkit.Config)
		work   agentkit.Work
		want   string
	}{
		{"no id", func(c *agentkit.Config) { c.AgentID = "" }, countWords, "AgentID"},
		{"invalid id", func(c *agentkit.Config) { c.AgentID = "Word Counter" }, countWords, "AgentID"},
		{"no key set URL", func(c *agentkit.Config) { c.JWKSURL = "" }, countWords, "JWKSURL"},
		{"key set in a file", func(c *agentkit.Config) { c.JWKSURL = "file:///etc/jwks.json" }, countWords, "JWKSURL"},
		{"key set without a host", func(c *agentkit.Config) { c.JWKSURL = "/.well-known/jwks.json" }, countWords, "JWKSURL"},
		{"not a URL", func(c *agentkit.Config) { c.JWKSURL = "http://a b" }, countWords, "JWKSURL"},
		{"no work", func(*agentkit.Config) {}, nil, "work"},
		{"router in a file", func(c *agentkit.Config) { c.RouterURL = "file:///router" }, countWords, "RouterURL"},
		{"router without a host", func(c *agentkit.Config) { c.RouterURL = "router.example:8080" }, countWords, "RouterURL"},
		{"password in the router URL", func(c *agentkit.Config) { c.RouterURL = "http://u:p@router.example" }, countWords, "RouterURL"},
		{"query in the router URL", func(c *agentkit.Config) { c.RouterURL = "http://router.example?x" }, countWords, "RouterURL"},
		{"invalid instance", func(c *agentkit.Config) { c.Registration.Instance = "A B" }, countWords, "Instance"},
		{"negative drain timeout", func(c *agentkit.Config) { c.DrainTimeout = -1 }, countWords, "DrainTimeout"},
		{"negative async limit", func(c *agentkit.Config) { c.AsyncAfter = -1 }, countWords, "AsyncAfter"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := good
			tc.change(&cfg)
			if _, err := agentkit.New(cfg, tc.work); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("New: got %v, want an error about %s", err, tc.want)
			}
		})
	}
	for _, cfg := range []agentkit.Config{good, {AgentID: "word_counter", RouterURL: "https://router.example/base/"}} {
		if _, err := agentkit.New(cfg, countWords); err != nil {
			t.Errorf("New with a valid config: got error %v", err)
		}
	}
}

func TestAgent_PassesTaskToWork(t *testing.T) {
	router := newFakeRouter(t)
	var got contract.Task
	var caller string
	var deadline time.Time
	h := newAgent(t, router, nil, func(ctx context.Context, task contract.Task) (contract.Result, error) {
		got, caller = task, agentkit.Caller(ctx)
		deadline, _ = ctx.Deadline()
		return contract.Result{Data: map[string]json.RawMessage{"n": json.RawMessage("3")}, Logs: []string{"counted"}}, nil
	})
	task := validTask().with("callback", object{"url": "https://router.example"}) // a member that only newer routers send
	res := result(t, serve(h, post("/", router.token(validClaims()), task.json())))

	var want contract.Task
	if err := json.Unmarshal([]byte(task.json()), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task of the work (-want +got):\n%s", diff)
	}
	if caller != "alice" {
		t.Errorf("caller: got %q, want alice", caller)
	}
	if !deadline.Equal(want.Deadline) {
		t.Errorf("deadline of the context: got %v, want the task's, %v", deadline, want.Deadline)
	}
	wantRes := contract.Result{
		TaskID: taskID, Status: contract.ResultSuccess, Logs: []string{"counted"},
		Data: map[string]json.RawMessage{"n": json.RawMessage("3")},
	}
	if diff := cmp.Diff(wantRes, res); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// JSON does not limit numbers. Inputs are for the work, which decodes those that it uses.
func TestAgent_AcceptsNumbersOfAnySize(t *testing.T) {
	router := newFakeRouter(t)
	var got string
	h := newAgent(t, router, nil, func(_ context.Context, task contract.Task) (contract.Result, error) {
		got = string(task.Inputs["n"])
		return contract.Result{}, nil
	})
	task := validTask().with("inputs", object{"prompt": "x", "n": json.RawMessage("[1e400,-1e-400]")})
	result(t, serve(h, post("/", router.token(validClaims()), task.json())))
	if want := "[1e400,-1e-400]"; got != want {
		t.Errorf("got input %q, want %q", got, want)
	}
}

func TestAgent_RejectsInvalidRequests(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, func(context.Context, contract.Task) (contract.Result, error) {
		t.Error("got a call of the work, want none")
		return contract.Result{}, nil
	})
	body := func(s string) func(*http.Request) {
		return func(r *http.Request) { *r = *post("/", router.token(validClaims()), s) }
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	at := func(method, path string) func(*http.Request) {
		return func(r *http.Request) { r.Method, r.URL.Path = method, path }
	}
	good := validTask()
	for _, tc := range []struct {
		name   string
		change func(*http.Request)
		status int
		words  string
	}{
		{"unknown path", at("POST", "/tasks"), 404, "POST /"},
		{"cancel without an id", at("POST", "/cancel"), 404, ""},
		{"cancel with an empty id", at("POST", "//cancel"), 404, ""},
		{"cancel with a path as id", at("POST", "/a/b/cancel"), 404, ""},
		{"cancel with a long id", at("POST", "/"+strings.Repeat("a", 129)+"/cancel"), 404, ""},
		{"GET a task", at("GET", "/"), 405, "only POST"},
		{"PUT a task", at("PUT", "/"), 405, "only POST"},
		{"GET a cancel", at("GET", "/"+taskID+"/cancel"), 405, "only POST"},
		{"POST to health", at("POST", "/healthz"), 405, "only GET"},
		{"a form", header("Content-Type", "application/x-www-form-urlencoded"), 415, "application/json"},
		{"no content type", header("Content-Type", ""), 415, "application/json"},
		{"JSON in Latin-1", header("Content-Type", "application/json; charset=iso-8859-1"), 415, "UTF-8"},
		{"malformed content type", header("Content-Type", "application/json;;"), 415, "application/json"},
		{"gzip", header("Content-Encoding", "gzip"), 415, "encoding"},
		{"body of 2 MiB and a byte", body(strings.Repeat(" ", 2<<20+1)), 413, "2097152"},
		{"long prompt", body(good.with("inputs", object{"prompt": strings.Repeat("x", 3<<20)}).json()), 413, ""},
		{"nothing", body(""), 400, "not a JSON object"},
		{"HTML", body("<html>"), 400, "not a JSON object"},
		{"a list", body("[]"), 400, "not a JSON object"},
		{"null", body("null"), 400, "not a JSON object"},
		{"truncated", body(good.json()[:80]), 400, "not valid JSON"},
		{"two tasks", body(good.json() + good.json()), 400, "trailing text"},
		{"duplicate task_id", body(strings.Replace(good.json(), "{", `{"task_id":"x",`, 1)), 400, "duplicate name"},
		{"duplicate nested name", body(strings.Replace(good.json(), `"limit"`, `"prompt":1,"limit"`, 1)), 400, "duplicate name"},
		{"Task_ID", body(strings.Replace(good.json(), `"task_id"`, `"Task_ID"`, 1)), 400, "only by case"},
		{"invalid UTF-8", body(strings.Replace(good.json(), "one two", "one \xff", 1)), 400, "UTF-8"},
		{"too deep", body(strings.Replace(good.json(), `:7`, ":"+strings.Repeat("[", 300)+strings.Repeat("]", 300), 1)), 400, "too deep"},
		{"no task_id", body(good.with("task_id", nil).json()), 400, "task_id"},
		{"task_id with a slash", body(good.with("task_id", "a/b").json()), 400, "task_id"},
		{"number as task_id", body(good.with("task_id", 7).json()), 400, "not a task"},
		{"no deadline", body(good.with("deadline", nil).json()), 400, "deadline"},
		{"invalid deadline", body(good.with("deadline", "tomorrow").json()), 400, "not a task"},
		{"expired deadline", body(good.with("deadline", time.Now().Add(-time.Second)).json()), 400, "deadline has passed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := post("/", router.token(validClaims()), good.json())
			tc.change(r)
			w := serve(h, r)
			checkProblem(t, w, tc.status, tc.words)
			if allow := w.Header().Get("Allow"); (allow != "") != (tc.status == 405) {
				t.Errorf("got Allow %q with status %d", allow, w.Code)
			}
		})
	}
}

func TestAgent_ChecksTokenBeforeReadingBody(t *testing.T) {
	h := newAgent(t, newFakeRouter(t), nil, countWords)
	body := &countingReader{}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/json")
	checkProblem(t, serve(h, r), http.StatusUnauthorized, "Authorization")
	if body.n != 0 {
		t.Errorf("got %d bytes read without a token, want 0", body.n)
	}
}

type countingReader struct{ n int }

func (c *countingReader) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

func TestAgent_ChecksContentType(t *testing.T) {
	router := newFakeRouter(t)
	h := newAgent(t, router, nil, countWords)
	for _, media := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		r := post("/", router.token(validClaims()), validTask().json())
		r.Header.Set("Content-Type", media)
		r.Header.Set("Content-Encoding", "identity")
		result(t, serve(h, r))
	}
}

func TestAgent_ServesHealth(t *testing.T) {
	h := newAgent(t, newFakeRouter(t), nil, countWords)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if w := serve(h, httptest.NewRequest(method, "/healthz", nil)); w.Code != http.StatusOK {
			t.Errorf("%s /healthz = %d, want 200", method, w.Code)
		}
	}
}

func TestAgent_ServesConfiguredPath(t *testing.T) {
	router := newFakeRouter(t)
	for _, configured := range []string{"/tasks", "tasks", "/tasks/", "tasks/"} {
		h := newAgent(t, router, nil, countWords, func(c *agentkit.Config) { c.Path = configured })
		for path, want := range map[string]int{
			"/tasks": 200, "/tasks/": 200, "/tasks/" + taskID + "/cancel": 204,
			"/": 404, "/other": 404, "/" + taskID + "/cancel": 404, "/tasksx": 404,
		} {
			if w := serve(h, post(path, router.token(validClaims()), validTask().json())); w.Code != want {
				t.Errorf("POST %s of an agent at %q: got %d, want %d", path, configured, w.Code, want)
			}
		}
	}
}

func TestAgent_WorksWithStripPrefix(t *testing.T) {
	router := newFakeRouter(t)
	h := http.StripPrefix("/agents/words", newAgent(t, router, nil, countWords))
	result(t, serve(h, post("/agents/words", router.token(validClaims()), validTask().json())))
}

func TestInput_DecodesValue(t *testing.T) {
	task := contract.Task{Inputs: map[string]json.RawMessage{"limit": json.RawMessage("7"), "prompt": json.RawMessage(`"hi"`)}}
	var limit int
	if ok, err := agentkit.Input(task, "limit", &limit); !ok || err != nil || limit != 7 {
		t.Errorf("Input(limit): got %v, %v and %d; want true, nil and 7", ok, err, limit)
	}
	if ok, err := agentkit.Input(task, "absent", &limit); ok || err != nil {
		t.Errorf("Input(absent): got %v, %v; want false, nil", ok, err)
	}
	if ok, err := agentkit.Input(task, "prompt", &limit); !ok || err == nil || !strings.Contains(err.Error(), "prompt") {
		t.Errorf("Input(prompt) into an int: got %v, %v; want true and an error that names it", ok, err)
	}
	if got := agentkit.Prompt(contract.Task{}); got != "" {
		t.Errorf("Prompt of an empty task: got %q, want the empty string", got)
	}
}

func TestData_EncodesValues(t *testing.T) {
	got, err := agentkit.Data(map[string]any{"n": 3, "words": []string{"a"}})
	want := map[string]json.RawMessage{"n": json.RawMessage("3"), "words": json.RawMessage(`["a"]`)}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Data: %v (-want +got):\n%s", err, diff)
	}
	if _, err := agentkit.Data(map[string]any{"bad": func() {}}); err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("Data of a func: got %v, want an error that names it", err)
	}
}

// FuzzTask looks for a body that panics, or that is neither rejected nor executed with its task id.
func FuzzTask(f *testing.F) {
	router := newFakeRouter(f)
	good := validTask()
	f.Add(good.json())
	f.Add(good.with("task_id", nil).json())
	f.Add(strings.Replace(good.json(), "{", `{"task_id":"x",`, 1))
	f.Add(`{"task_id":"a","TASK_ID":"b"}`)
	f.Add(`{"inputs":{"prompt":null}}`)
	f.Add("[" + strings.Repeat("{\"a\":", 1000))
	var done string
	h := newAgent(f, router, nil, func(_ context.Context, t contract.Task) (contract.Result, error) {
		done = t.TaskID
		return agentkit.Answer(agentkit.Prompt(t)), nil
	})
	token := router.token(validClaims().with("task_id", nil).with("exp", time.Now().Unix()+3600*23))
	f.Fuzz(func(t *testing.T, body string) {
		done = ""
		w := serve(h, post("/", token, body))
		if w.Code != http.StatusOK {
			if done != "" {
				t.Errorf("got status %d, but the work was done for %q", w.Code, done)
			}
			return
		}
		var sent struct {
			TaskID string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(body), &sent); err != nil || result(t, w).TaskID != sent.TaskID {
			t.Errorf("got %s for the task %q (%v)", w.Body, sent.TaskID, err)
		}
	})
}
