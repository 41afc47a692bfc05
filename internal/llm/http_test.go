package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakenet"
)

// serve starts a server and its client.
func serve(t *testing.T, wire llm.Protocol, handler http.HandlerFunc) (*http.Client, *url.URL) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	if wire.KeyHeader == "" {
		wire.KeyHeader = "x-goog-api-key"
	}
	client, base, err := llm.NewHTTPClient(llm.Config{BaseURL: server.URL, APIKey: llm.NewSecret(testKey), Version: "1.2.3"}, wire)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client, base
}

// post sends a request like an SDK.
func post(ctx context.Context, client *http.Client, target string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(`{}`))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Goog-Api-Key", "of the SDK")
	req.Header.Set("Authorization", "Bearer of the SDK")
	req.Header.Set("User-Agent", "an SDK")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestHTTPClient_KeyOnlyInHeader(t *testing.T) {
	for header, want := range map[string]http.Header{
		"x-goog-api-key": {"X-Goog-Api-Key": {testKey}, "User-Agent": {"caprouter/1.2.3"}},
		"Authorization":  {"Authorization": {"Bearer " + testKey}, "User-Agent": {"caprouter/1.2.3"}},
	} {
		t.Run(header, func(t *testing.T) {
			got := make(chan *http.Request, 1)
			client, base := serve(t, llm.Protocol{KeyHeader: header}, func(w http.ResponseWriter, r *http.Request) {
				got <- r
				_, _ = io.WriteString(w, `{"ok":true}`)
			})
			target := base.String() + "/v1beta/x?key=" + url.QueryEscape(testKey) + "&alt=json&key=again"
			if body, err := post(t.Context(), client, target); err != nil || body != `{"ok":true}` {
				t.Fatalf("got %q, %v", body, err)
			}
			r := testkit.Receive(t, got)
			if r.RequestURI != "/v1beta/x?alt=json" {
				t.Errorf("got URL %s, want it without the key", r.RequestURI)
			}
			for _, name := range []string{"Accept-Encoding", "Content-Length", "Content-Type"} {
				r.Header.Del(name)
			}
			if diff := cmp.Diff(want, r.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHTTPClient_NoKeyNoHeader(t *testing.T) {
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		_, _ = io.WriteString(w, `{}`)
	}))
	defer server.Close()
	client, base, err := llm.NewHTTPClient(llm.Config{BaseURL: server.URL}, llm.Protocol{KeyHeader: "Authorization"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if _, err := post(t.Context(), client, base.String()); err != nil {
		t.Fatal(err)
	}
	h := testkit.Receive(t, got)
	if h.Get("Authorization") != "" || h.Get("X-Goog-Api-Key") != "" || h.Get("User-Agent") != "caprouter/dev" {
		t.Errorf("got header %v", h)
	}
}

// The client rejects requests of the SDK to other hosts, such as a metadata server.
func TestHTTPClient_RejectsOtherHosts(t *testing.T) {
	client, base := serve(t, llm.Protocol{}, func(http.ResponseWriter, *http.Request) { t.Error("got a request at the server, want none") })
	for _, target := range []string{
		"http://169.254.169.254/computeMetadata/v1/", "https://" + base.Host, "http://localhost:" + base.Port(), "http://" + base.Host + "0",
	} {
		_, err := post(t.Context(), client, target)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Reason != llm.ReasonRejected {
			t.Errorf("%s: got %v, want it refused", target, err)
		}
	}
}

func TestHTTPClient_DoesNotFollowRedirects(t *testing.T) {
	trap := fakenet.NewTrap(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		client, base := serve(t, llm.Protocol{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:"+trap.Port)
			w.WriteHeader(status)
		})
		_, err := post(t.Context(), client, base.String())
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Status != status {
			t.Errorf("%d: got %v, want an error with that status", status, err)
		}
	}
	if n := trap.Caught(t); n != 0 {
		t.Errorf("got %d redirects followed, want none", n)
	}
}

func TestHTTPClient_IgnoresEnvironmentProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	client, base, err := llm.NewHTTPClient(llm.Config{BaseURL: "http://caprouter.invalid"}, llm.Protocol{KeyHeader: "Authorization"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	_, err = post(t.Context(), client, base.String())
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Reason != llm.ReasonUnavailable || strings.Contains(fmt.Sprint(e.Err), "127.0.0.1:1") {
		t.Errorf("got %v (%+v), want a name that is not known", err, e)
	}
}

func TestHTTPClient_Responses(t *testing.T) {
	big := `{"text":"` + strings.Repeat("a", 1<<20) + `"}`
	fits := `{"text":"` + strings.Repeat("a", 1<<20-11) + `"}`
	reply := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	google := func(status, message, details string) string {
		return fmt.Sprintf(`{"error":{"code":400,"status":%q,"message":%q,"details":[%s]}}`, status, message, details)
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string // the body, or ! and the error
	}{
		"object":                            {reply(200, ` {"a":1} `), ` {"a":1} `},
		"null error":                        {reply(200, `{"a":1,"error":null}`), `{"a":1,"error":null}`},
		"HTML content type":                 {reply(200, `{"a":1}`, "Content-Type", "text/html"), `{"a":1}`},
		"1 MiB":                             {reply(200, fits), fits},
		"more":                              {reply(200, big), "!llm_bad_response: the answer is larger than 1 MiB"},
		"HTML":                              {reply(200, "\n<html>"), "!llm_bad_response: the answer is a web page, not JSON: is llm.base_url right?"},
		"list":                              {reply(200, `[]`), "!llm_bad_response: the answer is not the JSON of a model: must be an object, got an array"},
		"duplicate member":                  {reply(200, `{"a":1,"a":2}`), `!llm_bad_response: the answer is not the JSON of a model: /a: name "a" appears more than once`},
		"error with 200":                    {reply(200, google("INTERNAL", "try later", "")), "!llm_bad_response: an error with status 200: INTERNAL, try later"},
		"unusual error with 200":            {reply(200, `{"error":true}`), "!llm_bad_response: an error with status 200"},
		"error as a string":                 {reply(200, `{"error":"overloaded"}`), "!llm_bad_response: an error with status 200: overloaded"},
		"error with the key":                {reply(200, `{"error":"`+testKey+`"}`), "!llm_bad_response: an error with status 200: <redacted>"},
		"unknown model":                     {reply(404, google("NOT_FOUND", "models/x is not found", "")), "!llm_rejected: HTTP 404: NOT_FOUND, models/x is not found"},
		"OpenAI's words":                    {reply(404, `{"error":{"message":"no such model","type":"invalid_request_error","param":null,"code":"model_not_found"}}`), "!llm_rejected: HTTP 404: model_not_found, no such model"},
		"vLLM's words":                      {reply(400, `{"object":"error","message":"too long","type":"BadRequestError","code":400}`), "!llm_rejected: HTTP 400: too long"},
		"unknown error format":              {reply(400, `<html>`), "!llm_rejected: HTTP 400"},
		"terminal codes":                    {reply(400, `{"error":"a\u001b[2Jb\nc\u202ed"}`), "!llm_rejected: HTTP 400: a[2Jb cd"},
		"many words":                        {reply(400, `{"error":"`+strings.Repeat("é", 200)+`"}`), "!llm_rejected: HTTP 400: " + strings.Repeat("é", 80) + "…"},
		"our key, escaped":                  {reply(400, google("INVALID_ARGUMENT", "key="+url.QueryEscape(testKey)+" "+testKey, "")), "!llm_rejected: HTTP 400: INVALID_ARGUMENT, key=<redacted> <redacted>"},
		"our key, with a space of no width": {reply(400, `{"error":"sk-test\u200b/7Hq+2=canary"}`), "!llm_rejected: HTTP 400: <redacted>"},
		"our key, cut in two":               {reply(400, `{"error":"`+strings.Repeat("a", 155)+testKey+`"}`), "!llm_rejected: HTTP 400: " + strings.Repeat("a", 155) + "<reda…"},
		"wrong key":                         {reply(401, google("UNAUTHENTICATED", "sk-te***ary is wrong", "")), "!llm_unauthorized: HTTP 401: the key was refused; see llm.api_key_env"},
		"key not permitted":                 {reply(403, ``), "!llm_unauthorized: HTTP 403: the key was refused; see llm.api_key_env"},
		"wrong key, as 400":                 {reply(400, google("INVALID_ARGUMENT", "no", `{"reason":"API_KEY_INVALID"}`)), "!llm_unauthorized: HTTP 400: the key was refused; see llm.api_key_env"},
		"expired key, as 400":               {reply(400, google("INVALID_ARGUMENT", "API key expired. Please renew it.", "")), "!llm_unauthorized: HTTP 400: the key was refused; see llm.api_key_env"},
		"too many":                          {reply(429, google("RESOURCE_EXHAUSTED", "quota of project 12345", "")), "!llm_rate_limited: HTTP 429: RESOURCE_EXHAUSTED"},
		"server error":                      {reply(500, google("INTERNAL", "stack trace", "")), "!llm_unavailable: HTTP 500: INTERNAL"},
		"too busy":                          {reply(503, ``), "!llm_unavailable: HTTP 503"},
		"accepted, for later":               {reply(202, `{"a":1}`), "!llm_bad_response: HTTP 202"},
		"moved":                             {reply(308, ``, "Location", "https://elsewhere.example/?key=x"), "!llm_rejected: HTTP 308: redirects are not followed: set llm.base_url to where it leads"},
		"not modified":                      {reply(304, ``), "!llm_rejected: HTTP 304"},
	} {
		t.Run(name, func(t *testing.T) {
			client, base := serve(t, llm.Protocol{}, tc.handler)
			got, err := post(t.Context(), client, base.String()+"/x")
			if e, ok := errors.AsType[*llm.Error](err); ok {
				got = "!" + e.Error()
			} else if err != nil {
				t.Fatalf("got %T %v, want *llm.Error", err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHTTPClient_RetryAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		header, body string
		want         time.Duration // −1 = more than an hour
	}{
		"nothing":                {429, "", "", 0},
		"seconds":                {429, "7", "", 7 * time.Second},
		"seconds of a 503":       {503, " 7 ", "", 7 * time.Second},
		"date":                   {429, time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat), "", -1},
		"date in the past":       {429, "Wed, 21 Oct 2015 07:28:00 GMT", "", 0},
		"less than none":         {429, "-3", "", 0},
		"no number":              {429, "1e3", "", 0},
		"number of years":        {429, "4294967295", "", 24 * time.Hour},
		"number out of range":    {429, "99999999999999999999", "", 0},
		"in Gemini's body":       {429, "", `{"error":{"details":[{"@type":"x"},{"retryDelay":"36.5s"}]}}`, 36500 * time.Millisecond},
		"both, the longer":       {429, "2", `{"error":{"details":[{"retryDelay":"36s"}]}}`, 36 * time.Second},
		"no duration":            {429, "", `{"error":{"details":[{"retryDelay":"soon"}]}}`, 0},
		"where it has no use":    {400, "7", "", 0},
		"where it has none also": {401, "7", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			client, base := serve(t, llm.Protocol{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tc.header)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			_, err := post(t.Context(), client, base.String())
			e, ok := errors.AsType[*llm.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if tc.want >= 0 && e.RetryAfter != tc.want || tc.want < 0 && e.RetryAfter <= time.Hour {
				t.Errorf("got %v, want %v", e.RetryAfter, tc.want)
			}
		})
	}
}

// An error does not contain the prompt, even if the server repeats it.
func TestHTTPClient_ErrorsDoNotContainPrompt(t *testing.T) {
	long := "Here is the request, which is rather long and holds a secret: the code is 4711."
	for name, tc := range map[string]struct{ user, message, want string }{
		"short prompt":            {"code 4711", "cannot read code 4711, sorry", "llm_rejected: HTTP 400: INVALID_ARGUMENT"},
		"long prompt":             {long, "cannot read " + long, "llm_rejected: HTTP 400: INVALID_ARGUMENT"},
		"part of the prompt":      {long, "near '" + long[40:70] + "'", "llm_rejected: HTTP 400: INVALID_ARGUMENT"},
		"no part of it":           {long, "the schema is not supported", "llm_rejected: HTTP 400: INVALID_ARGUMENT, the schema is not supported"},
		"empty prompt":            {"", "contents is empty", "llm_rejected: HTTP 400: INVALID_ARGUMENT, contents is empty"},
		"less than a part can be": {long, "request", "llm_rejected: HTTP 400: INVALID_ARGUMENT, request"},
	} {
		t.Run(name, func(t *testing.T) {
			client, base := serve(t, llm.Protocol{}, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"error":{"status":"INVALID_ARGUMENT","message":%q}}`, tc.message)
			})
			_, err := post(llm.WithRequest(t.Context(), &llm.Request{User: tc.user}), client, base.String())
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || e.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestHTTPClient_Filter(t *testing.T) {
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"a":1}`) }
	client, base := serve(t, llm.Protocol{Filter: func(b []byte) ([]byte, error) { return append(b, b...), nil }}, handler)
	if got, err := post(t.Context(), client, base.String()); got != `{"a":1}{"a":1}` || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	client, base = serve(t, llm.Protocol{Filter: func([]byte) ([]byte, error) { return nil, errors.New("odd") }}, handler)
	if _, err := post(t.Context(), client, base.String()); llm.ReasonOf(err) != llm.ReasonBadResponse {
		t.Errorf("got %v, want %s", err, llm.ReasonBadResponse)
	}
}

// silentServer accepts a connection and sends nothing. The deadline of the context is the arrival
// of the first byte, independent of the speed of the machine.
func silentServer(t *testing.T) (addr string, deadline context.Context) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			close(arrived)
		}
		_, _ = io.Copy(io.Discard, conn)
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return listener.Addr().String(), endingContext{context.WithoutCancel(t.Context()), arrived}
}

// endingContext has reached its deadline when end is closed.
type endingContext struct {
	context.Context //nolint:containedctx // it is a context
	end             chan struct{}
}

// Done implements context.Context.
func (c endingContext) Done() <-chan struct{} { return c.end }

// Err implements context.Context.
func (c endingContext) Err() error {
	select {
	case <-c.end:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestHTTPClient_ConnectionErrors(t *testing.T) {
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangsUp.Close()
	muteTLS, handshakeEnds := silentServer(t)
	mute, requestEnds := silentServer(t)
	for name, tc := range map[string]struct {
		url, want string
		unsent    bool
		ctx       context.Context //nolint:containedctx // of the one call of the case; nil = the test's
	}{
		"no listener":       {"http://" + testkit.RefusingAddress, "llm_unavailable: the model's server refuses connections", true, nil},
		"no such name":      {"http://caprouter.invalid", "llm_unavailable: the host of the model's server is not known", true, nil},
		"wrong certificate": {tls.URL, "llm_unavailable: the certificate of the model's server is not valid", true, nil},
		"http where TLS is": {strings.Replace(tls.URL, "https", "http", 1), "llm_rejected: HTTP 400", false, nil},
		"no handshake":      {"https://" + muteTLS, "llm_timeout: no answer in time", true, handshakeEnds},
		"no response":       {"http://" + mute, "llm_timeout: no answer in time", false, requestEnds},
		"connection closed": {hangsUp.URL, "llm_unavailable: the connection to the model was lost", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			client, base, err := llm.NewHTTPClient(llm.Config{BaseURL: tc.url}, llm.Protocol{KeyHeader: "Authorization"})
			if err != nil {
				t.Fatal(err)
			}
			defer client.CloseIdleConnections()
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err = post(ctx, client, base.String())
			if e, ok := errors.AsType[*llm.Error](err); !ok || e.Error() != tc.want || e.Unsent != tc.unsent {
				t.Errorf("got %+v, want %s, unsent %v", err, tc.want, tc.unsent)
			}
		})
	}
}
