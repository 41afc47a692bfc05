package llm_test

import (
	"math"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/llm"
)

func TestConfig_Endpoint(t *testing.T) {
	key := llm.NewSecret(testKey)
	for name, tc := range map[string]struct {
		cfg  llm.Config
		want string // the URL, or ! and a part of the error
	}{
		"default URL":                  {llm.Config{APIKey: key}, "https://maker.example/v1"},
		"default URL without a key":    {llm.Config{}, "!llm.api_key_env"},
		"one's own without a key":      {llm.Config{BaseURL: "http://10.0.0.5:8000/v1"}, "http://10.0.0.5:8000/v1"},
		"trailing slash":               {llm.Config{BaseURL: "http://localhost:11434/v1//"}, "http://localhost:11434/v1"},
		"loopback over plain http":     {llm.Config{BaseURL: "http://127.0.0.1:8080", APIKey: key}, "http://127.0.0.1:8080"},
		"another host over plain http": {llm.Config{BaseURL: "http://10.0.0.5:8000/v1", APIKey: key}, "!plain http"},
		"the same, allowed":            {llm.Config{BaseURL: "http://10.0.0.5/v1", APIKey: key, AllowPlainHTTP: true}, "http://10.0.0.5/v1"},
		"another host over https":      {llm.Config{BaseURL: "https://llm.example/v1", APIKey: key}, "https://llm.example/v1"},
		"key with a comment":           {llm.Config{APIKey: llm.NewSecret("canary # mine")}, "!llm.api_key_env"},
		"key with two lines":           {llm.Config{APIKey: llm.NewSecret("canary\nx")}, "!llm.api_key_env"},
		"key with other letters":       {llm.Config{APIKey: llm.NewSecret("canary…")}, "!llm.api_key_env"},
		"no URL":                       {llm.Config{BaseURL: "llm.example/v1"}, "!no URL"},
		"no host":                      {llm.Config{BaseURL: "https:///v1"}, "!no URL"},
		"no port":                      {llm.Config{BaseURL: "https://llm.example:port/v1"}, "!no URL"},
		"another scheme":               {llm.Config{BaseURL: "ftp://llm.example/v1"}, "!neither http nor https"},
		"key in the query":             {llm.Config{BaseURL: "https://llm.example/v1?key=" + testKey}, "!llm.api_key_env"},
		"empty query":                  {llm.Config{BaseURL: "https://llm.example/v1?"}, "!a query"},
		"key as a user":                {llm.Config{BaseURL: "https://canary@llm.example/v1"}, "!llm.api_key_env"},
		"key in an invalid URL":        {llm.Config{BaseURL: "https://llm.example:x/?key=canary"}, "!no URL"},
		"key in the fragment":          {llm.Config{BaseURL: "https://llm.example/v1#canary"}, "!llm.api_key_env"},
		"escaped path":                 {llm.Config{BaseURL: "https://llm.example/a%2Fb/"}, "https://llm.example/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := tc.cfg.Endpoint("https://maker.example/v1")
			want, fails := strings.CutPrefix(tc.want, "!")
			switch {
			case fails && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("got %v, %v; want an error with %q", u, err, want)
			case fails && strings.Contains(err.Error(), "canary"):
				t.Errorf("got the key in the error: %v", err)
			case !fails && (err != nil || u.String() != want):
				t.Errorf("got %v, %v; want %s", u, err, want)
			}
		})
	}
}

func TestConfig_GeminiModel(t *testing.T) {
	for model, want := range map[string]string{
		"":                          "models/" + llm.DefaultModel,
		"gemini-2.5-flash":          "models/gemini-2.5-flash",
		"models/gemini-2.5-flash":   "models/gemini-2.5-flash",
		"tunedModels/mine-42":       "tunedModels/mine-42",
		"gemini?key=x":              "",
		"a/b":                       "",
		"../../v1/files":            "",
		"models/..":                 "",
		"gemini 2.5":                "",
		"gemini:generateContent":    "",
		strings.Repeat("long", 100): "",
	} {
		t.Run(model, func(t *testing.T) {
			cfg := llm.Config{Model: model}
			got, err := cfg.GeminiModel()
			if got != want || (err == nil) != (want != "") {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
			if err != nil && !strings.Contains(err.Error(), "llm.model") {
				t.Errorf("got no key name in the error %q", err)
			}
		})
	}
}

func TestConfig_RequestTemperature(t *testing.T) {
	for name, tc := range map[string]struct {
		set  float64
		want float32 // −1 = none
		ok   bool
	}{
		"zero is sent":       {0, 0, true},
		"maximum":            {2, 2, true},
		"less than 0 is not": {-1, -1, true},
		"too much":           {2.1, 0, false},
		"no number":          {math.NaN(), 0, false},
		"infinite":           {math.Inf(1), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := llm.Config{Temperature: tc.set}
			got, err := cfg.RequestTemperature()
			if (err == nil) != tc.ok {
				t.Fatalf("got error %v, want none: %v", err, tc.ok)
			}
			if !tc.ok {
				return
			}
			if sent := got != nil; sent != (tc.want >= 0) || sent && *got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestParseThinking(t *testing.T) {
	for text, want := range map[string]llm.Thinking{
		"": {}, "off": {Level: "off"}, "0": {Level: "off"}, "minimal": {Level: "minimal"}, "high": {Level: "high"},
		"1": {Tokens: 1}, "1024": {Tokens: 1024}, "131072": {Tokens: 131072},
	} {
		if got, err := llm.ParseThinking(text); got != want || err != nil {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "131073", "1.5", "HIGH", "on", "yes", "99999999999999999999", " low"} {
		if got, err := llm.ParseThinking(text); err == nil || !strings.Contains(err.Error(), "llm.thinking") {
			t.Errorf("%q: got %+v, %v; want an error that names the key", text, got, err)
		}
	}
}
