package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

// Reports of agents reach the router with the grant of their token.
func TestHandleResult_PassesResults(t *testing.T) {
	var grant contract.TaskGrant
	var result *contract.Result
	var progress *contract.Progress
	core := &fakeBackend{later: fakeLater{
		result: func(g contract.TaskGrant, r *contract.Result) error {
			grant, result = g, r
			return nil
		},
		progress: func(g contract.TaskGrant, p *contract.Progress) error {
			grant, progress = g, p
			return nil
		},
	}}
	srv := startServer(t, httpserver.Config{}, core)
	agent := []string{"Authorization", "Bearer " + testToken}
	want := contract.TaskGrant{AgentID: "quality_agent", RequestID: testRequest, TaskID: testTask}

	got := srv.post(t, "/api/v1/tasks/"+testTask+"/result", `{"task_id":"`+testTask+`","status":"success","data":{"answer":"42"},"logs":["l"]}`, agent...)
	if string(got.body) != `{"status":"accepted"}` || result.Status != contract.ResultSuccess || result.Text() != "42" || grant != want {
		t.Errorf("got %s, result %+v and grant %+v", got.body, result, grant)
	}
	grant = contract.TaskGrant{}
	got = srv.post(t, "/api/v1/tasks/"+testTask+"/progress", `{"message":"half","percent":50,"data":{"n":1}}`, agent...)
	if got.StatusCode != http.StatusNoContent || len(got.body) != 0 || progress.Message != "half" || *progress.Percent != 50 || grant != want {
		t.Errorf("got %d, progress %+v and grant %+v", got.StatusCode, progress, grant)
	}
}

func TestHandleResult_RejectsInvalidResults(t *testing.T) {
	core := &fakeBackend{later: failWith(errLate)} // 409 would show that the router was called
	srv := startServer(t, httpserver.Config{}, core)
	cases := []struct {
		name, path, body string
		status           int
		pointers         []string
	}{
		{"nothing", "result", ``, 400, nil},
		{"no task", "result", `{"status":"success"}`, 422, []string{"/task_id"}},
		{"no status", "result", `{}`, 422, []string{"/status"}},
		{"unknown status", "result", `{"status":"done"}`, 422, []string{"/status"}},
		{"unknown member", "result", `{"status":"success","answer":"x"}`, 422, []string{"/answer"}},
		{"another task", "result", `{"status":"success","task_id":"` + testRequest + `"}`, 422, []string{"/task_id"}},
		{"duplicate member", "result", `{"status":"success","status":"failure"}`, 422, []string{"/status"}},
		{"no message", "progress", `{"percent":1}`, 422, []string{"/message"}},
		{"long message", "progress", `{"message":"` + strings.Repeat("m", 1001) + `"}`, 422, []string{"/message"}},
		{"percent above 100", "progress", `{"message":"m","percent":100.5}`, 422, []string{"/percent"}},
		{"negative percent", "progress", `{"message":"m","percent":-1}`, 422, []string{"/percent"}},
	}
	for _, c := range cases {
		t.Run(c.path+" "+c.name, func(t *testing.T) {
			got := srv.post(t, "/api/v1/tasks/"+testTask+"/"+c.path, c.body, "Authorization", "Bearer "+testToken)
			if diff := cmp.Diff(c.pointers, pointers(problemOf(t, got))); diff != "" || got.StatusCode != c.status {
				t.Errorf("got %d %s, want %d; pointers (-want +got):\n%s", got.StatusCode, got.body, c.status, diff)
			}
		})
	}
}

// Results may be larger than requests, progress must be small.
func TestHandleResult_LimitsBodySize(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	sized := func(body string, n int) string { return body + strings.Repeat(" ", n-len(body)) }
	cases := []struct {
		name, path, body string
		status           int
	}{
		{"result at its limit", "result", sized(`{"task_id":"`+testTask+`","status":"success"}`, maxResultBytes), 200},
		{"result above its limit", "result", sized(`{"task_id":"`+testTask+`","status":"success"}`, maxResultBytes+1), 413},
		{"progress at its limit", "progress", sized(`{"message":"m"}`, maxProgressBytes), 204},
		{"progress above its limit", "progress", sized(`{"message":"m"}`, maxProgressBytes+1), 413},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, hide := range []bool{false, true} {
				got := srv.send(t, http.MethodPost, "/api/v1/tasks/"+testTask+"/"+c.path, chunkedIf(hide, c.body),
					"Content-Type", httpserver.MediaTypeJSON, "Authorization", "Bearer "+testToken)
				if got.StatusCode != c.status {
					t.Errorf("chunked %t: got %d %.100s, want %d", hide, got.StatusCode, got.body, c.status)
				}
			}
		})
	}
}

// A token of another task is rejected before the body is read.
func TestAuthorizeTask_RejectsOtherTokens(t *testing.T) {
	read := false
	core := &fakeBackend{later: failWith(errLate)}
	s := newServer(t, httpserver.Config{}, core)
	cases := []struct {
		name, task string
		headers    []string
		status     int
	}{
		{"none", testTask, nil, 401},
		{"wrong", testTask, []string{"Bearer other"}, 401},
		{"another scheme", testTask, []string{"Basic " + testToken}, 401},
		{"no scheme", testTask, []string{testToken}, 401},
		{"two", testTask, []string{"Bearer " + testToken, "Bearer " + testToken}, 401},
		{"of another task", testRequest, []string{"Bearer " + testToken}, 404},
		{"task id in other case", strings.ToUpper(testTask), []string{"Bearer " + testToken}, 404},
	}
	for _, c := range cases {
		for _, path := range []string{"result", "progress"} {
			t.Run(c.name+" "+path, func(t *testing.T) {
				r := localRequest(http.MethodPost, "/api/v1/tasks/"+c.task+"/"+path, "")
				r.Header["Authorization"] = c.headers
				r.Body, r.ContentLength = readRecorder{&read}, 10
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code != c.status || read {
					t.Errorf("got %d %s and body read %t, want %d", w.Code, w.Body, read, c.status)
				}
				if strings.Contains(w.Body.String(), "secret") {
					t.Errorf("got the reason of the token error in the response: %s", w.Body)
				}
				if challenge := w.Header().Get("Www-Authenticate"); strings.HasPrefix(challenge, "Bearer") != (c.status == 401) {
					t.Errorf("got WWW-Authenticate %q with %d", challenge, c.status)
				}
			})
		}
	}
}

// readRecorder is a body that records whether it was read.
type readRecorder struct{ read *bool }

func (b readRecorder) Read([]byte) (int, error) {
	*b.read = true
	return 0, io.EOF
}

func (readRecorder) Close() error { return nil }
