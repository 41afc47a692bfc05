package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
	"github.com/caprouter/caprouter/internal/testkit/fakeotlp"
)

const modelRegistry = `
clients:
  quality_agent: {match: {intent: [code_review], domains: [python]}}
  billing_agent: {match: {intent: [cost_analysis], domains: [azure]}}
`

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// modelEnv is an environment with the keys of the models.
func modelEnv(name string) (string, bool) {
	if name == "GEMINI_API_KEY" || name == "OPENAI_API_KEY" {
		return fakellm.APIKey, true
	}
	return "", false
}

// useModel configures the fake model.
func useModel(cfg *config.Config, provider string, model *fakellm.Server) {
	cfg.LLM.Provider, cfg.LLM.BaseURL, cfg.LLM.Model = provider, model.URL, model.Model
}

// writeFile writes a file in a directory of its own, and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// findings diagnoses the configuration and returns the findings by check.
func findings(t *testing.T, cfg config.Config, lookup func(string) (string, bool)) map[string]Finding {
	t.Helper()
	all := map[string]Finding{}
	Run(t.Context(), cfg, app.Options{LookupEnv: lookup}, func(f Finding) { all[f.Check] = f })
	return all
}

func diagnosable(t *testing.T, registry string) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.DataDir = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	cfg.Registry.File = writeFile(t, "capabilities.yaml", registry)
	return cfg
}

// Agents with the protocol orchestrator need a model that plans; other registries have no finding.
func TestRun_ReportsMissingPlanner(t *testing.T) {
	const goals = modelRegistry + "  doer: {match: {intent: [count], domains: [numbers]}, endpoint: {protocol: orchestrator}}\n"
	for _, tt := range []struct{ name, registry, kind, level, detail string }{
		{"no such agent", modelRegistry, "", "", ""},
		{"no planner", goals, "", LevelWarn, "no model plans: every task of doer ends with planner_not_configured"},
		{"plans of callers only", goals, "static", LevelWarn, "no model plans: every task of doer ends with planner_not_configured"},
		{"planner", goals, "gemini", LevelOK, "gemini plans the tasks of doer"},
	} {
		cfg := diagnosable(t, tt.registry)
		cfg.Orchestrator.Planner.Kind = tt.kind
		f := findings(t, cfg, noEnv)["planner"]
		if f.Level != tt.level || f.Detail != tt.detail || (f.Fix != "") != (tt.level == LevelWarn) {
			t.Errorf("%s: got %+v, want %s %q", tt.name, f, tt.level, tt.detail)
		}
	}
}

// TestRun_LeavesNoFiles: no key is created in an existing directory, and a missing directory
// is not created.
func TestRun_LeavesNoFiles(t *testing.T) {
	cfg := diagnosable(t, modelRegistry)
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelOK {
		t.Errorf("missing directory: got %+v, want ok", f)
	}
	if _, err := os.Stat(cfg.DataDir); err == nil {
		t.Error("got the data directory created, want it missing")
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	findings(t, cfg, noEnv)
	if entries, err := os.ReadDir(cfg.DataDir); err != nil || len(entries) > 0 {
		t.Errorf("got %v and error %v in the data directory, want nothing", entries, err)
	}
	if err := os.WriteFile(filepath.Join(cfg.DataDir, keyring.File), []byte("no key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelFail || f.Fix == "" {
		t.Errorf("got %+v for a key that others may read, want a failure with its fix", f)
	}
}

// TestRun_FailsOnUnusableDataDir checks directories with which serve does not start.
func TestRun_FailsOnUnusableDataDir(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "afile")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"below a file": filepath.Join(file, "d"), "a file": file}
	if _, err := os.Stat("/proc/self"); err == nil {
		dirs["no place for files"] = "/proc/x/y"
	}
	if os.Getuid() > 0 {
		readOnly := filepath.Join(root, "ro")
		if err := os.Mkdir(readOnly, 0o500); err != nil {
			t.Fatal(err)
		}
		dirs["below a read-only directory"] = filepath.Join(readOnly, "d")
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			cfg := diagnosable(t, modelRegistry)
			cfg.DataDir = dir
			f := findings(t, cfg, noEnv)["data directory"]
			if f.Level != LevelFail || f.Fix == "" || strings.Contains(f.Detail, ".doctor-") {
				t.Errorf("got %+v, want a failure with its fix and without the probe's name", f)
			}
			s, err := app.Start(t.Context(), cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
			if err == nil {
				_ = s.Wait()
				t.Fatal("got serve started, want an error")
			}
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--data-dir") && !strings.Contains(err.Error(), file) {
				t.Errorf("got %q, want one line with the fix", err)
			}
		})
	}
}

// TestRun_ReportsLockedDataDir: a second router would not start with the directory; the
// running one is diagnosed with a warning.
func TestRun_ReportsLockedDataDir(t *testing.T) {
	cfg := diagnosable(t, modelRegistry)
	ctx, stop := context.WithCancel(t.Context())
	s, err := app.Start(ctx, cfg, app.Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	defer func() {
		stop()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	}()
	f := findings(t, cfg, noEnv)["data directory"]
	if want := fmt.Sprintf("held by process %d", os.Getpid()); f.Level != LevelFail || !strings.Contains(f.Detail, want) || f.Fix == "" {
		t.Errorf("got %+v, want a failure with %q and its fix", f, want)
	}
	cfg.Listen = s.Addr()
	if f := findings(t, cfg, noEnv)["data directory"]; f.Level != LevelWarn || !strings.Contains(f.Fix, s.Addr()) {
		t.Errorf("running router: got %+v, want a warning", f)
	}
}

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

func TestRun_Cascade(t *testing.T) {
	var learned strings.Builder
	learned.WriteString("clients:\n")
	for _, intent := range []string{"fly", "cook", "sing"} {
		fmt.Fprintf(&learned, "  %s_agent:\n    match: {intent: [%s], domains: [d_%s]}\n    examples:\n      %s:\n", intent, intent, intent, intent)
		for i := range 60 {
			fmt.Fprintf(&learned, "        - \"%s something nice for number%d please\"\n", intent, i)
		}
	}
	for registry, want := range map[string]string{modelRegistry: LevelWarn, learned.String(): LevelOK, "clients: [": LevelSkip} {
		cfg := diagnosable(t, registry)
		cfg.Classifier.Mode = "cascade"
		if got := findings(t, cfg, modelEnv)["cascade"]; got.Level != want {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func TestRun_Model(t *testing.T) {
	for provider, wire := range map[string]fakellm.Protocol{
		config.ProviderGemini: fakellm.Gemini, config.ProviderGenAI: fakellm.Gemini, config.ProviderOpenAI: fakellm.OpenAI,
	} {
		t.Run(provider, func(t *testing.T) {
			model := fakellm.Start(t, fakellm.Config{Protocol: wire})
			cfg := diagnosable(t, modelRegistry)
			useModel(&cfg, provider, model)
			if got := findings(t, cfg, modelEnv)["model"]; got.Level != LevelOK {
				t.Errorf("got %+v, want ok", got)
			}
			wrongKey := func(string) (string, bool) { return "another-key", true }
			if got := findings(t, cfg, wrongKey)["model"]; got.Level != LevelFail || !strings.Contains(got.Fix, cfg.LLM.KeyEnv()) || strings.Contains(fmt.Sprint(got), "another-key") {
				t.Errorf("wrong key: got %+v, want a failure with the variable and without the key", got)
			}
			cfg.LLM.Model = "no-such-model"
			if got := findings(t, cfg, modelEnv)["model"]; got.Level != LevelFail || !strings.Contains(got.Fix, "llm.model") {
				t.Errorf("unknown model: got %+v, want a failure that names llm.model", got)
			}
		})
	}
}

// An unset key is reported as unset, not as wrong.
func TestRun_ReportsUnsetKey(t *testing.T) {
	cfg := diagnosable(t, modelRegistry)
	cfg.LLM.Provider, cfg.LLM.Model = config.ProviderOpenAI, "m"
	const unset = "OPENAI_API_KEY is not set"
	if got := findings(t, cfg, noEnv)["classifier"]; got.Level != LevelWarn || !strings.Contains(got.Detail, unset) {
		t.Errorf("got %+v, want a warning that %s", got, unset)
	}
	model := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI})
	useModel(&cfg, config.ProviderOpenAI, model)
	if got := findings(t, cfg, noEnv)["model"]; got.Level != LevelFail || !strings.Contains(got.Detail, unset) || got.Fix != "set the variable OPENAI_API_KEY" {
		t.Errorf("server that needs a key: got %+v, want a failure because %s", got, unset)
	}
	local := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, NoKey: true})
	useModel(&cfg, config.ProviderOpenAI, local)
	if got := findings(t, cfg, noEnv)["model"]; got.Level != LevelOK || !strings.Contains(got.Detail, "no key is sent, because "+unset) {
		t.Errorf("server that needs no key: got %+v, want ok without a key", got)
	}
}

func TestProbeActions(t *testing.T) {
	const agent = "  weather_agent: {match: {intent: [forecast], domains: [weather]}, endpoint: {protocol: mcp, action: %s}}\n"
	const servers = `{"plugins":[{"id":"weather","endpoint":"http://127.0.0.1:1/","actions":[{"name":"query"}]}]}`
	for _, tt := range []struct {
		name, action, file string
		level, detail      string
	}{
		{"known action", "weather.query", servers, LevelOK, "the servers have the actions of 1 agent"},
		{"misspelt tool", "weather.qurey", servers, LevelWarn, "no server has the action weather.qurey of agent weather_agent, did you mean weather.query?"},
		{"server without the capability", "weather.query}, mcp_capabilities: ['gis:read'], health: {interval_s: 0", servers, LevelWarn, "agent weather_agent declares no capability that the server of its action weather.query provides"},
		{"unknown server", "storage.read", servers, LevelWarn, "no server has the action storage.read of agent weather_agent"},
		{"server that cannot be reached", "weather.query", `{"servers":[{"id":"weather","url":"http://127.0.0.1:1/"}]}`, LevelWarn, `server "weather" is not connected, so that its tools are not known`},
		{"no servers", "weather.query", "", LevelSkip, "no MCP servers"},
		{"no agent", "", servers, LevelSkip, "no agent is a tool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registry := modelRegistry
			if tt.action != "" {
				registry += fmt.Sprintf(agent, tt.action)
			}
			cfg := diagnosable(t, registry)
			t.Chdir(t.TempDir())
			if tt.file != "" {
				if err := os.WriteFile(config.DefaultMCPFile, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := ProbeActions(t.Context(), cfg, app.Options{LookupEnv: noEnv})
			if got.Check != "mcp actions" || got.Level != tt.level || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("got %+v, want %s with detail %q", got, tt.level, tt.detail)
			}
		})
	}
}

func TestProbeModel(t *testing.T) {
	refusesSchema := func(r *fakellm.Request) fakellm.Behaviour {
		if r.Schema != nil {
			return fakellm.Body(400, "application/json", `{"error":{"message":"This response_format type is unavailable now"}}`)
		}
		return fakellm.Text(fakellm.ValidReply())
	}
	for _, tc := range []struct {
		name        string
		script      fakellm.Script
		format      string
		level       string
		detail, fix string
	}{
		{"valid reply", nil, "", LevelOK, fakellm.ValidIntent, ""},
		{"json_schema not supported", refusesSchema, "", LevelFail, "set llm.response_format: json_object", "read the server's text"},
		{"json_object instead", refusesSchema, "json_object", LevelOK, fakellm.ValidIntent, ""},
		{"json_schema ignored", fakellm.Always(fakellm.Text("It is a code review.")), "", LevelFail, "llm_invalid_json", "llm.response_format: json_object"},
		{"another intent", fakellm.Always(fakellm.Text(`{"intent":"unknown","domains":[],"subtasks":[],"confidence":0.9}`)), "", LevelWarn, "is unknown", "larger model"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			model := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Script: tc.script})
			cfg := diagnosable(t, modelRegistry)
			useModel(&cfg, config.ProviderOpenAI, model)
			cfg.LLM.ResponseFormat = cmp.Or(tc.format, cfg.LLM.ResponseFormat)
			got := ProbeModel(t.Context(), cfg, app.Options{LookupEnv: modelEnv, LogOutput: io.Discard})
			if got.Check != "classification" || got.Level != tc.level || !strings.Contains(got.Detail, tc.detail) || !strings.Contains(got.Fix, tc.fix) {
				t.Errorf("got %+v, want %s with detail %q and fix %q", got, tc.level, tc.detail, tc.fix)
			}
			if strings.Contains(fmt.Sprint(got), fakellm.APIKey) {
				t.Errorf("got the key in %+v", got)
			}
		})
	}
	cfg := diagnosable(t, modelRegistry)
	if got := ProbeModel(t.Context(), cfg, app.Options{LookupEnv: noEnv}); got.Level != LevelSkip {
		t.Errorf("no model: got %+v, want skip", got)
	}
}

func TestRun_Store(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*config.Config)
		level  string
		fix    string
	}{
		"embedded":           {func(*config.Config) {}, LevelOK, ""},
		"delayed sync":       {func(c *config.Config) { c.Store.Sync = "100ms" }, LevelWarn, "store.sync"},
		"store server":       {func(c *config.Config) { c.Store.URL = "nats://127.0.0.1:4222" }, LevelWarn, "sync_interval"},
		"audit log optional": {func(c *config.Config) { c.Audit.Required = false }, LevelWarn, "audit.required"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.DataDir = t.TempDir()
			tt.change(&cfg)
			f := findings(t, cfg, noEnv)["store"]
			if f.Level != tt.level || !strings.Contains(f.Fix, tt.fix) {
				t.Errorf("got %+v, want %s and %q in the fix", f, tt.level, tt.fix)
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

// TestRun_MCP: the file is loaded as by serve, and no server is started.
func TestRun_MCP(t *testing.T) {
	const agent = modelRegistry + "  weather_agent: {match: {intent: [forecast], domains: [weather]}, endpoint: {protocol: mcp, action: weather.query}}\n"
	restricted := strings.Replace(agent, "endpoint:", "mcp_capabilities: ['weather:read'], endpoint:", 1)
	const lacking = modelRegistry + "  planner: {match: {intent: [plan], domains: [travel]}, mcp_capabilities: ['gis:read'], endpoint: {protocol: pull}}\n"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good := fmt.Sprintf(`{"servers": [{"id": "weather", "command": %q}, {"id": "other", "url": "http://127.0.0.1:1/"}]}`, self)
	for name, tt := range map[string]struct {
		registry, file string // file "" = none
		level, detail  string
	}{
		"valid file":           {agent, good, LevelOK, "mcp.json: 2 servers"},
		"no file":              {modelRegistry, "", LevelSkip, "there is no mcp.json"},
		"invalid file":         {modelRegistry, `{"servers": [{"id": "a"}]}`, LevelFail, `server "a" needs a command or a url`},
		"unset variable":       {modelRegistry, `{"servers": [{"id": "a", "url": "http://h/${NOT_SET}"}]}`, LevelWarn, `server "a" is blocked: environment variable NOT_SET is not set`},
		"unknown command":      {modelRegistry, `{"servers": [{"id": "a", "command": "no-such-program"}]}`, LevelWarn, `"no-such-program" of server "a" is not found`},
		"relative command":     {modelRegistry, `{"servers": [{"id": "a", "command": "./no-such-program", "cwd": "/"}]}`, LevelWarn, `"./no-such-program" of server "a" is not found`},
		"other PATH":           {modelRegistry, `{"servers": [{"id": "a", "command": "no-such-program", "env": {"PATH": "/x"}}]}`, LevelOK, "1 server"},
		"disabled server":      {modelRegistry, `{"servers": [{"id": "a", "command": "no-such-program", "enabled": false}]}`, LevelOK, "1 server"},
		"unknown server":       {agent, `{"servers": [{"id": "wether", "url": "http://h/"}]}`, LevelWarn, "the action weather.query of agent weather_agent is of no server in mcp.json"},
		"forbidden server":     {restricted, `{"servers": [{"id": "weather", "url": "http://h/", "capabilities": ["sky:read"]}]}`, LevelWarn, "agent weather_agent declares no capability that the server of its action weather.query provides"},
		"capability provided":  {restricted, `{"servers": [{"id": "weather", "url": "http://h/", "capabilities": ["weather:*"]}]}`, LevelOK, "1 server"},
		"capability missing":   {lacking, `{"servers": [{"id": "a", "url": "http://h/", "capabilities": ["gis:write"]}, {"id": "b", "url": "http://h/", "capabilities": ["gis:*"], "enabled": false}]}`, LevelWarn, "no server in mcp.json provides the capability gis:read of agent planner"},
		"agent without a file": {agent, "", LevelWarn, "the action weather.query of agent weather_agent is of no server in mcp.json"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := diagnosable(t, tt.registry)
			t.Chdir(t.TempDir())
			if tt.file != "" {
				if err := os.WriteFile(config.DefaultMCPFile, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f := findings(t, cfg, noEnv)["mcp"]
			if f.Level != tt.level || !strings.Contains(f.Detail, tt.detail) || (f.Fix == "") != (f.Level == LevelOK || f.Level == LevelSkip) {
				t.Errorf("got %+v, want %s with %q", f, tt.level, tt.detail)
			}
		})
	}
	cfg := diagnosable(t, modelRegistry)
	cfg.MCP.File = "missing.json"
	if f := findings(t, cfg, noEnv)["mcp"]; f.Level != LevelFail || !strings.Contains(f.Detail, "missing.json") {
		t.Errorf("missing named file: got %+v, want a failure", f)
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

// A key instead of the name of its variable is a usual mistake.
func TestRun_DoesNotRepeatKeyInPlaceOfVariable(t *testing.T) {
	c := config.Default()
	c.LLM.APIKeyEnv = "AIza-not-a-name-5Q2x8Zr7"
	Run(t.Context(), c, app.Options{LookupEnv: noEnv}, func(f Finding) {
		if strings.Contains(f.Detail+f.Fix, "5Q2x8Zr7") {
			t.Errorf("finding %+v repeats the value", f)
		}
	})
}
