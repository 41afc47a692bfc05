package agentkit_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/agentkit"
)

func TestCallbackSender_RetriesByStatus(t *testing.T) {
	noRoute := errors.New("no route to host")
	for _, tc := range []struct {
		name   string
		answer func(int, *http.Request) (*http.Response, error)
		tries  int
		logged string // "" = no log line
	}{
		{"accepted", statuses(200), 1, ""},
		{"another 2xx status", statuses(204), 1, ""},
		{"already accepted", statuses(409), 1, "409"},
		{"unknown task", statuses(404), 1, "404"},
		{"invalid token", statuses(401), 1, "401"},
		{"not a Result", statuses(422), 1, "422"},
		{"a redirect", statuses(307), 1, "307"},
		{"router restarts", statuses(503, 502, 200), 3, ""},
		{"too many requests", statuses(429, 200), 2, ""},
		{"408 and 425", statuses(408, 425, 200), 3, ""},
		{"no route, then a conflict", func(n int, _ *http.Request) (*http.Response, error) {
			if n < 4 {
				return nil, noRoute
			}
			return answer(409, ""), nil
		}, 5, "409"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				d := newFakeCallbackServer()
				d.answer = tc.answer
				a := d.agent(t, &log, slow)
				checkAccepted(t, serve(a, d.post(d.task())))
				if err := a.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := len(d.received()); got != tc.tries {
					t.Errorf("got %d attempts, want %d", got, tc.tries)
				}
				if tc.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), tc.logged) || strings.Contains(log.String(), "task-token") {
					t.Errorf("got log %q, want it to contain %q and no token", log.String(), tc.logged)
				}
			})
		})
	}
}

// The pauses between attempts grow while the router does not answer, and the attempts end at the
// deadline.
func TestCallbackSender_BacksOffUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := newFakeCallbackServer()
		d.answer = statuses(503)
		a := d.agent(t, &log, slow)
		checkAccepted(t, serve(a, d.post(d.task().with("deadline", time.Now().Add(5*time.Minute)))))
		if err := a.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		posts := d.received()
		for i := 1; i < len(posts); i++ {
			pause, most := posts[i].At-posts[i-1].At, min(100*time.Millisecond<<(i-1), 30*time.Second)
			if pause < most/2 || pause > most {
				t.Errorf("pause %d: got %v, want between %v and %v", i, pause, most/2, most)
			}
		}
		if took := time.Since(d.began); took > 5*time.Minute+2*time.Second || len(posts) < 15 || len(posts) > 40 {
			t.Errorf("got %d attempts in %v, want 15 to 40 until just after the deadline", len(posts), took)
		}
		if !strings.Contains(log.String(), "no more time") {
			t.Errorf("got log %q, want the line about the undelivered result", log.String())
		}
	})
}

func TestCallbackSender_HonoursRetryAfter(t *testing.T) {
	for retryAfter, want := range map[string]time.Duration{"7": 7 * time.Second, "3600": 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeCallbackServer()
			d.answer = func(n int, _ *http.Request) (*http.Response, error) {
				resp := answer([]int{503, 200}[n], "")
				resp.Header.Set("Retry-After", retryAfter)
				return resp, nil
			}
			a := d.agent(t, nil, slow)
			checkAccepted(t, serve(a, d.post(d.task())))
			if err := a.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if posts := d.received(); len(posts) != 2 || posts[1].At-posts[0].At != want {
				t.Errorf("Retry-After %s: got %+v, want two attempts %v apart", retryAfter, posts, want)
			}
		})
	}
}

func TestCallbackPolicy_RejectsOtherHosts(t *testing.T) {
	hosts := func(h ...string) []string { return h }
	path := strings.TrimPrefix(resultURL, "http://router.example")
	for _, tc := range []struct {
		name, url string
		more      []string
		token     string
		ok        bool
	}{
		{"router", resultURL, nil, "t", true},
		{"router with its port", "http://router.example:80" + path, nil, "t", true},
		{"router in upper case", "http://ROUTER.example" + path, nil, "t", true},
		{"router with a path prefix", "http://router.example/x" + path, nil, "t", true},
		{"router over HTTPS", "https://router.example" + path, nil, "t", false},
		{"another port", "http://router.example:81" + path, nil, "t", false},
		{"another host", "http://evil.example" + path, nil, "t", false},
		{"a subdomain", "http://router.example.evil.example" + path, nil, "t", false},
		{"router as the user name", "http://router.example@evil.example" + path, nil, "t", false},
		{"a password", "http://u:p@router.example" + path, nil, "t", false},
		{"named", "https://public.example" + path, hosts("public.example"), "t", true},
		{"configured host in upper case", "https://public.example:443" + path, hosts("PUBLIC.example"), "t", true},
		{"configured host with a port", "https://public.example:8443" + path, hosts("public.example:8443"), "t", true},
		{"configured host, other port", "https://public.example" + path, hosts("public.example:8443"), "t", false},
		{"configured host over HTTP, like the keys", "http://public.example" + path, hosts("public.example"), "t", true},
		{"other host than the configured one", "https://other.example" + path, hosts("public.example"), "t", false},
		{"configured host, other scheme", "ftp://public.example" + path, hosts("public.example"), "t", false},
		{"a file", "file:///router.example" + path, nil, "t", false},
		{"no host", path, nil, "t", false},
		{"not a URL", "http://router.example:x" + path, nil, "t", false},
		{"another path", "http://router.example/api/v1/tasks/" + taskID, nil, "t", false},
		{"query", resultURL + "?x=/result", nil, "t", false},
		{"fragment", resultURL + "#/result", nil, "t", false},
		{"nowhere", "", nil, "t", false},
		{"no token", resultURL, nil, "", false},
		{"token with a newline", resultURL, nil, "a\nb", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				d := newFakeCallbackServer()
				a := d.agent(t, &log, slow, func(c *agentkit.Config) { c.CallbackHosts = tc.more })
				w := serve(a, d.post(validTask().with("callback", object{"url": tc.url, "token": tc.token})))
				if err := a.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				if want := map[bool]int{true: 202, false: 200}[tc.ok]; w.Code != want {
					t.Errorf("got status %d, want %d", w.Code, want)
				}
				if posts := d.received(); (len(posts) == 1) != tc.ok {
					t.Errorf("got callbacks %+v, want one: %v", posts, tc.ok)
				}
				if warned := strings.Contains(log.String(), "callback not used"); warned == tc.ok {
					t.Errorf("got log %q, want a warning: %v", log.String(), !tc.ok)
				}
			})
		})
	}
}

// If the key set is fetched over HTTPS, results are not sent over plain HTTP.
func TestCallbackPolicy_RejectsDowngradeToHTTP(t *testing.T) {
	for url, want := range map[string]int{
		"https://router.example/api/v1/tasks/" + taskID + "/result": http.StatusAccepted,
		"https://public.example/api/v1/tasks/" + taskID + "/result": http.StatusAccepted,
		"http://router.example/api/v1/tasks/" + taskID + "/result":  http.StatusOK,
		"http://public.example/api/v1/tasks/" + taskID + "/result":  http.StatusOK,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeCallbackServer()
			a := d.agent(t, nil, slow, func(c *agentkit.Config) {
				c.JWKSURL, c.CallbackHosts = "https://router.example/.well-known/jwks.json", []string{"public.example"}
			})
			w := serve(a, d.post(validTask().with("callback", object{"url": url, "token": "t"})))
			if err := a.Shutdown(t.Context()); err != nil || w.Code != want {
				t.Errorf("callback %s: got status %d (%v), want %d", url, w.Code, err, want)
			}
		})
	}
}
