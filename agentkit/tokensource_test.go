package agentkit_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/agentkit"
)

func TestTokenSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	const name = "AGENTKIT_TEST_TOKEN"
	for text, want := range map[string]string{ // "" = an error
		"a.b-c_d":                 "a.b-c_d",
		" \ta.b\r\n":              "a.b",
		"":                        "",
		"\n":                      "",
		"a.b\nc.d":                "",
		"a b":                     "",
		"é":                       "",
		strings.Repeat("a", 8193): "",
	} {
		writeToken(t, file, text)
		t.Setenv(name, text)
		for kind, source := range map[string]agentkit.TokenSource{file: agentkit.TokenFile(file), name: agentkit.TokenEnv(name)} {
			got, err := source(t.Context())
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q in %s: got %q and %v, want %q", text, kind, got, err, want)
			}
			if err != nil && (!strings.Contains(err.Error(), kind) || len(text) > 1 && strings.Contains(err.Error(), text)) {
				t.Errorf("%q in %s: got error %q, want one that names the source and not the text", text, kind, err)
			}
		}
	}
	if _, err := agentkit.TokenFile(file + ".gone")(t.Context()); err == nil {
		t.Error("missing file: got no error, want one")
	}
}

func writeToken(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The next request uses a rotated token, without a restart.
func TestTokenFile_RotatesBetweenHeartbeats(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	writeToken(t, file, "first")
	synctest.Test(t, func(t *testing.T) {
		f := newFakeRegistry()
		f.reply = func(n int, call string, _ *http.Request) (*http.Response, error) {
			if call == callHeartbeat && n == 0 {
				writeToken(t, file, "second")
			}
			return nil, nil
		}
		if err := f.keepRegistered(t, nil, 25*time.Second, func(c *agentkit.Config) { c.Token = agentkit.TokenFile(file) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"first", "first", "second", "second", "second"}, f.tokens()); diff != "" {
			t.Errorf("tokens (-want +got):\n%s", diff)
		}
	})
}

// tokens returns the tokens of all requests in order.
func (f *fakeRegistry) tokens() []string {
	var tokens []string
	for _, c := range f.received("") {
		if c.Call != callShutdown {
			tokens = append(tokens, c.Token)
		}
	}
	return tokens
}

// If the token is rotated while a request is in flight, the router rejects the old one, and the
// request is repeated at once with the new one.
func TestKeepRegistered_RepeatsRequestAfterRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		current := "first"
		f.reply = func(n int, call string, r *http.Request) (*http.Response, error) {
			if n == 0 && (call == callRegister || call == callHeartbeat) {
				current += "+"
			}
			if r.Header.Get("Authorization") != "Bearer "+current {
				return problemReply(401, "unauthenticated", "Authentication is required", ""), nil
			}
			return nil, nil
		}
		err := f.keepRegistered(t, &log, 12*time.Second, func(c *agentkit.Config) {
			c.Token = func(context.Context) (string, error) { return current, nil }
		})
		if err != nil {
			t.Fatalf("KeepRegistered = %v", err)
		}
		want := []string{"first", "first+", "first+", "first++", "first++", "first++"}
		if diff := cmp.Diff(want, f.tokens()); diff != "" {
			t.Errorf("tokens (-want +got):\n%s", diff)
		}
		if puts, beats := f.received(callRegister), f.received(callHeartbeat); puts[0].At != puts[1].At || beats[0].At != beats[1].At {
			t.Errorf("got registrations %+v and heartbeats %+v, want each repeated at once", puts, beats)
		}
		if strings.Contains(log.String(), "401") {
			t.Errorf("got log\n%s\nwant no line about the rejected token", log.String())
		}
	})
}

// If the token stays invalid, the agent continues at the normal interval and logs it once.
func TestKeepRegistered_LogsInvalidTokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFakeRegistry()
		f.reply = replyTo(callHeartbeat, 401, 401, 401)
		if err := f.keepRegistered(t, &log, 45*time.Second, func(c *agentkit.Config) { c.Token = token("secret") }); err != nil {
			t.Fatal(err)
		}
		if n := len(f.received(callHeartbeat)); n != 4 {
			t.Errorf("got %d heartbeats in 45 s, want 4", n)
		}
		if got := strings.Count(log.String(), "(401)"); got != 1 || strings.Contains(log.String(), "secret") {
			t.Errorf("got log\n%s\nwant one line about the invalid token, without it", log.String())
		}
	})
}
