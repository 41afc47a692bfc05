package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func noEnv(string) (string, bool) { return "", false }

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad_EnvironmentOverridesFile(t *testing.T) {
	path := writeFile(t, "caprouter.yaml", "listen: 127.0.0.1:9000\ndata_dir: /from-file\ndispatch: { timeout_ms: 5000, token_reuse_s: 60 }\nregistry: { hot_reload: false }\n")
	env := map[string]string{"CAPROUTER_DATA_DIR": "/from-env", "CAPROUTER_DISPATCH_TIMEOUT_MS": "7000", "CAPROUTER_REGISTRY_HOT_RELOAD": "true"}
	got, err := Load(path, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Listen = "127.0.0.1:9000"
	want.DataDir = "/from-env"
	want.Dispatch.TimeoutMS = 7000
	want.Dispatch.TokenReuseS = 60
	want.Registry.HotReload = true
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestLoad_ReadsVariablesOfMCP(t *testing.T) {
	path := writeFile(t, "caprouter.yaml", "mcp: { file: from-file.json, default_timeout_ms: 1000 }\n")
	env := map[string]string{
		"MCP_REGISTRY_FILE": "classpath:config/mcp_registry.json", "MCP_REGISTRY_HOT_RELOAD": "false",
		"MCP_DEFAULT_TIMEOUT_MS": "2000", "MCP_CIRCUIT_BREAKER_ENABLED": "false", "CAPROUTER_MCP_DEFAULT_TIMEOUT_MS": "3000",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	got, err := Load(path, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := MCP{File: "config/mcp_registry.json", DefaultTimeoutMS: 3000, Pins: "first_use"}
	if diff := cmp.Diff(want, got.MCP); diff != "" {
		t.Errorf("mcp (-want +got):\n%s", diff)
	}
	for _, name := range []string{"MCP_REGISTRY_HOT_RELOAD", "MCP_DEFAULT_TIMEOUT_MS"} {
		env[name] = "perhaps"
		if _, err := Load(path, lookup); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want %s in it", err, name)
		}
		delete(env, name)
	}
}

func TestLoad_DefaultsWithoutFile(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := Load("", noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("default configuration: got error %v, want none", err)
	}
}

func TestLoad_ReportsErrors(t *testing.T) {
	tests := []struct {
		name, content string
		env           map[string]string
		want          []string // substrings of the error
	}{
		{name: "unknown key", content: "listn: 127.0.0.1:1\n", want: []string{"caprouter.yaml:1:1:", `"listn"`, `"listen"`}},
		{name: "unknown nested key", content: "registry:\n  fle: x\n", want: []string{"caprouter.yaml:2:3:", `"file"`}},
		{name: "wrong type", content: "dispatch:\n  timeout_ms: soon\n", want: []string{"caprouter.yaml:2:15:"}},
		{name: "second document", content: "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", want: []string{"caprouter.yaml:2:"}},
		{name: "number in environment", content: "listen: 127.0.0.1:1\n", env: map[string]string{"CAPROUTER_DISPATCH_TIMEOUT_MS": "1s"}, want: []string{"CAPROUTER_DISPATCH_TIMEOUT_MS", `"1s"`}},
		{name: "bool in environment", content: "listen: 127.0.0.1:1\n", env: map[string]string{"CAPROUTER_REGISTRY_HOT_RELOAD": "maybe"}, want: []string{"CAPROUTER_REGISTRY_HOT_RELOAD", `"maybe"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := writeFile(t, "caprouter.yaml", tt.content)
			_, err := Load(path, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
			if err == nil {
				t.Fatal("got no error, want one")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %q, want %q in it", err, want)
				}
			}
		})
	}
	t.Run("missing file", func(t *testing.T) {
		if _, err := Load(filepath.Join(t.TempDir(), "missing.yaml"), noEnv); err == nil {
			t.Error("got no error, want one")
		}
	})
}

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   string // "" = valid
	}{
		{"loopback v4", func(c *Config) { c.Listen = "127.8.9.1:80" }, ""},
		{"loopback v6", func(c *Config) { c.Listen = "[::1]:0" }, ""},
		{"localhost", func(c *Config) { c.Listen = "localhost:0" }, ""},
		{"every interface", func(c *Config) { c.Listen = ":8080" }, "listen:"},
		{"every interface v4", func(c *Config) { c.Listen = "0.0.0.0:8080" }, "listen:"},
		{"every interface v6", func(c *Config) { c.Listen = "[::]:8080" }, "listen:"},
		{"private address", func(c *Config) { c.Listen = "10.0.0.1:8080" }, "listen:"},
		{"a name", func(c *Config) { c.Listen = "localhost.example:8080" }, "listen:"},
		{"no port", func(c *Config) { c.Listen = "127.0.0.1" }, "listen:"},
		{"auth mode", func(c *Config) { c.Auth.Mode = "basic" }, "auth.mode:"},
		{"ES256", func(c *Config) { c.Auth.AgentTokens.Alg = "ES256" }, ""},
		{"another algorithm", func(c *Config) { c.Auth.AgentTokens.Alg = "RS256" }, "auth.agent_tokens.alg:"},
		{"no algorithm", func(c *Config) { c.Auth.AgentTokens.Alg = "" }, "auth.agent_tokens.alg:"},
		{"timeout", func(c *Config) { c.Dispatch.TimeoutMS = 0 }, "dispatch.timeout_ms:"},
		{"log level", func(c *Config) { c.Telemetry.LogLevel = "loud" }, "telemetry.log_level:"},
		{"aggregate", func(c *Config) { c.Dispatch.Aggregate = "joined" }, "dispatch.aggregate:"},
		{"data dir", func(c *Config) { c.DataDir = "" }, "data_dir:"},
		{"classifier mode", func(c *Config) { c.Classifier.Mode = "LLM" }, "classifier.mode:"},
		{"classifier timeout", func(c *Config) { c.Classifier.TimeoutMS = 0 }, "classifier.timeout_ms:"},
		{"no cache", func(c *Config) { c.Classifier.Cache.Entries = 0 }, ""},
		{"cache age", func(c *Config) { c.Classifier.Cache.TTLS = 0 }, "classifier.cache.ttl_s:"},
		{"accept is a number", func(c *Config) { c.Classifier.Cascade.Accept = "0.9" }, ""},
		{"accept above 1", func(c *Config) { c.Classifier.Cascade.Accept = "1.01" }, "classifier.cascade.accept:"},
		{"accept NaN", func(c *Config) { c.Classifier.Cascade.Accept = "NaN" }, "classifier.cascade.accept:"},
		{"provider", func(c *Config) { c.LLM.Provider = "google" }, "llm.provider:"},
		{"invalid base URL without a key", func(c *Config) { c.LLM.BaseURL = "ftp://llm.example" }, "llm.base_url"},
		{"own server", func(c *Config) { c.LLM.BaseURL = "http://llm.example:8000/v1" }, ""},
		{"public URL on loopback", func(c *Config) { c.PublicURL = "http://localhost:8080/router" }, ""},
		{"public URL over HTTPS", func(c *Config) { c.PublicURL = "https://router.example/caprouter" }, ""},
		{"public URL over plain HTTP", func(c *Config) { c.PublicURL = "http://router.example" }, "public_url"},
		{"public URL over plain HTTP, allowed", func(c *Config) {
			c.PublicURL, c.Dispatch.AllowPlainHTTP = "http://router.example", true
		}, ""},
		{"public URL with a query", func(c *Config) { c.PublicURL = "https://router.example/?a=b" }, "public_url"},
		{"invalid thinking without a key", func(c *Config) { c.LLM.Thinking = "hard" }, "llm.thinking"},
		{"thinking in tokens", func(c *Config) { c.LLM.Thinking = "1024" }, ""},
		{"no temperature", func(c *Config) { c.LLM.Temperature = -1 }, ""},
		{"temperature", func(c *Config) { c.LLM.Temperature = 2.5 }, "llm.temperature:"},
		{"no key", func(c *Config) { c.LLM.APIKeyEnv = "" }, ""},
		{"json_object", func(c *Config) { c.LLM.Provider, c.LLM.ResponseFormat = ProviderOpenAI, "json_object" }, ""},
		{"json_object of Gemini", func(c *Config) { c.LLM.ResponseFormat = "json_object" }, "llm.response_format: json_object is for llm.provider openai"},
		{"unknown format", func(c *Config) { c.LLM.ResponseFormat = "text" }, "llm.response_format: "},
		{"masked kinds", func(c *Config) { c.Redact.Kinds = StringList{"email", "card"} }, ""},
		{"no kinds", func(c *Config) { c.Redact.Kinds = StringList{"none"} }, ""},
		{"empty list of kinds", func(c *Config) { c.Redact.Kinds = StringList{} }, "redact.kinds: is empty"},
		{"unknown kind", func(c *Config) { c.Redact.Kinds = StringList{"e-mail"} }, "redact.kinds: "},
		{"default with a kind", func(c *Config) { c.Redact.Kinds = StringList{"default", "email"} }, "redact.kinds: default and none cannot be combined with other words"},
		{"empty allowed value", func(c *Config) { c.Redact.Allow = []string{""} }, "redact.allow"},
		{"trigger", func(c *Config) { c.Session.ClassifyTrigger = "never" }, "session.classify_trigger:"},
		{"session age", func(c *Config) { c.Session.TTLS = 0 }, "session.ttl_s:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Default()
			tt.change(&c)
			err := c.Validate()
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got error %q, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestValidate_DoesNotPrintKeyInPlaceOfVariable: a key that was set instead of the name of its
// variable is not in the error.
func TestValidate_DoesNotPrintKeyInPlaceOfVariable(t *testing.T) {
	c := Default()
	c.LLM.APIKeyEnv = "AIza-not-a-name-5Q2x8Zr7"
	err := c.Validate()
	if err == nil || !strings.Contains(err.Error(), "llm.api_key_env:") || strings.Contains(err.Error(), "5Q2x8Zr7") {
		t.Errorf("got error %v, want one with the configuration key and without the value", err)
	}
}

// TestLoad_ReadsListsFromEnvironment: an empty variable is an empty list, which is rejected if it
// would disable a feature.
func TestLoad_ReadsListsFromEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	for value, want := range map[string]string{"email, ip": "", "default": "", "none": "", "": "redact.kinds: is empty"} {
		cfg, err := Load("", func(name string) (string, bool) { return value, name == "CAPROUTER_REDACT_KINDS" })
		if err == nil {
			err = cfg.Validate()
		}
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%q: got error %v, want %q", value, err, want)
		}
	}
}

func TestUnknownEnvNames_FindsMisspeltKeys(t *testing.T) {
	var cfg Config
	cfg.Auth.Keys = []Key{{SecretEnv: "CAPROUTER_CI_SECRET"}}
	cfg.Store.Encryption.KeyEnv = "CAPROUTER_CONTENT_KEY"
	cfg.Tickets.Webhook.SecretEnv, cfg.LLM.APIKeyEnv = "CAPROUTER_HOOK_SECRET", "CAPROUTER_MODEL_KEY"
	got := UnknownEnvNames(&cfg, []string{
		"CAPROUTER_CI_SECRET=a", "CAPROUTER_CONTENT_KEY=b", "CAPROUTER_HOOK_SECRET=c", "CAPROUTER_MODEL_KEY=d",
		"PATH=/bin", "CAPROUTERISH=1", "CAPROUTER_LISTEN=127.0.0.1:1", "CAPROUTER_DISPATCH_TIMEOUT_MS=1",
		"CAPROUTER_URL=http://127.0.0.1:1", "CAPROUTER_CONFIG=x",
		"CAPROUTER_LISTN=127.0.0.1:1", "CAPROUTER_DISPATCH=1",
	})
	if diff := cmp.Diff([]string{"CAPROUTER_DISPATCH", "CAPROUTER_LISTN"}, got); diff != "" {
		t.Errorf("unknown variables (-want +got):\n%s", diff)
	}
}
