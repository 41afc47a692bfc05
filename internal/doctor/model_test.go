package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

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
