package doctor

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakeotlp"
)

// TestRun_Webhook compares the finding with the result of Start.
func TestRun_Webhook(t *testing.T) {
	const enough = "0123456789abcdef01234567"
	for name, tt := range map[string]struct {
		url, secret string
		plain       bool
		level       string
	}{
		"no webhook":                     {level: LevelOK},
		"secret":                         {url: "https://hooks.example/x", secret: enough, level: LevelOK},
		"Standard Webhooks secret":       {url: "https://hooks.example/x", secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", level: LevelOK},
		"loopback":                       {url: "http://127.0.0.1:1/x", secret: enough, level: LevelOK},
		"no secret":                      {url: "https://hooks.example/x", level: LevelFail},
		"short secret":                   {url: "https://hooks.example/x", secret: enough[1:], level: LevelFail},
		"short Standard Webhooks secret": {url: "https://hooks.example/x", secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", level: LevelFail},
		"not base64":                     {url: "https://hooks.example/x", secret: "whsec_?", level: LevelFail},
		"plain HTTP":                     {url: "http://hooks.example/x", secret: enough, level: LevelFail},
		"plain HTTP, allowed":            {url: "http://hooks.example/x", secret: enough, plain: true, level: LevelOK},
		"password":                       {url: "https://a:b@hooks.example/x", secret: enough, level: LevelFail},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := diagnosable(t, modelRegistry)
			cfg.Tickets.Webhook = config.Webhook{URL: tt.url, SecretEnv: "HOOK_SECRET"}
			cfg.Dispatch.AllowPlainHTTP = tt.plain
			lookup := func(name string) (string, bool) { return tt.secret, name == "HOOK_SECRET" && tt.secret != "" }
			f := findings(t, cfg, lookup)["tickets"]
			if f.Level != tt.level || (f.Fix == "") != (f.Level == LevelOK) || tt.secret != "" && strings.Contains(f.Detail+f.Fix, tt.secret) {
				t.Errorf("got %+v, want %s", f, tt.level)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			s, err := app.Start(ctx, cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: lookup})
			if (err == nil) != (tt.level == LevelOK) {
				t.Errorf("serve: %v", err)
			}
			if err == nil {
				stop()
				_ = s.Wait()
			}
		})
	}
}

func TestRun_CallersAndTLS(t *testing.T) {
	env := map[string]string{"GOOD": rand.Text() + rand.Text(), "WEAK": "secret"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, tc := range []struct {
		name   string
		change func(*config.Config)
		check  string
		level  string
		detail string
	}{
		{"none", func(*config.Config) {}, "callers", LevelOK, "auth.mode is none"},
		{"no authentication, agents of tenants", func(c *config.Config) {
			c.Registry.File = writeFile(t, "capabilities.yaml", "clients:\n  rights_agent: {match: {intent: [license]}, requires: {tenants: [lisboa]}}\n")
		}, "callers", LevelWarn, "rights_agent is for named tenants, and the local caller has none"},
		{"own tokens", func(c *config.Config) { c.Auth.Mode = config.AuthJWT }, "callers", LevelOK, "tokens of 0 keys and 0 issuers, and of caprouter token"},
		{"valid key", func(c *config.Config) {
			c.Auth.Mode, c.Auth.Keys = config.AuthJWT, []config.Key{{KID: "a", Alg: "HS256", SecretEnv: "GOOD"}}
		}, "callers", LevelOK, "tokens of 1 key"},
		{"weak key", func(c *config.Config) {
			c.Auth.Mode, c.Auth.Keys = config.AuthJWT, []config.Key{{KID: "a", Alg: "HS256", SecretEnv: "WEAK"}}
		}, "callers", LevelFail, "auth.keys[0] (a)"},
		{"two keys with one name", func(c *config.Config) {
			key := config.Key{KID: "a", Alg: "HS256", SecretEnv: "GOOD"}
			c.Auth.Mode, c.Auth.Keys = config.AuthJWT, []config.Key{key, key}
		}, "callers", LevelFail, "two keys have the kid"},
		{"plain HTTP on loopback", func(*config.Config) {}, "tls", LevelOK, "on this machine only"},
		{"plain HTTP on every interface", func(c *config.Config) { c.Auth.Mode, c.Listen = config.AuthJWT, "0.0.0.0:0" }, "tls", LevelWarn, "clear text"},
		{"no certificate", func(c *config.Config) { c.TLS = config.TLS{CertFile: "/none", KeyFile: "/none"} }, "tls", LevelFail, "/none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.DataDir, cfg.Listen = t.TempDir(), "127.0.0.1:0"
			tc.change(&cfg)
			all := map[string]Finding{}
			Run(t.Context(), cfg, app.Options{LookupEnv: lookup}, func(f Finding) { all[f.Check] = f })
			if f := all[tc.check]; f.Level != tc.level || !strings.Contains(f.Detail, tc.detail) || (f.Level == LevelOK) != (f.Fix == "") {
				t.Errorf("got %+v, want %s with %q", f, tc.level, tc.detail)
			}
		})
	}
}

func TestRun_Tracing(t *testing.T) {
	receiver := fakeotlp.Start(t)
	cfg := config.Default()
	cfg.Telemetry.OTLPEndpoint = receiver.URL
	d := &diagnosis{Config: cfg, opts: &app.Options{LookupEnv: noEnv}}
	if got, want := d.checkTracing(t.Context()), checkPassed("1 % of the traces that begin here go to "+receiver.URL+"/v1/traces"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
