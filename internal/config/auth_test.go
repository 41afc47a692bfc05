package config

import (
	"strings"
	"testing"
)

func TestValidate_RejectsInvalidAuthKeys(t *testing.T) {
	key := func(text string) string { return "auth: { mode: jwt, keys: [" + text + "] }\n" }
	issuer := func(text string) string { return "auth: { mode: jwt, issuers: [" + text + "] }\n" }
	for _, tc := range []struct{ name, content, want string }{
		{"unknown mode", "auth: { mode: basic }\n", `auth.mode: must be none or jwt, got "basic"`},
		{"no issuer", "auth: { issuer: \"\" }\n", "auth.issuer: must not be empty"},
		{"no audience", "auth: { audience: \"\" }\n", "auth.audience: must not be empty"},
		{"keys without auth.mode jwt", "auth: { keys: [{ kid: a, alg: EdDSA, public_key_file: a.pub }] }\n", "use auth.mode jwt"},
		{"unknown member of a key", key("{ kid: a, algo: EdDSA }"), `unknown key "algo"`},
		{"no kid", key("{ alg: EdDSA, public_key_file: a.pub }"), "auth.keys[0].kid: must not be empty"},
		{"algorithm none", key("{ kid: a, alg: none, public_key_file: a.pub }"), `auth.keys[0].alg: must be EdDSA, ES256, RS256 or HS256, got "none"`},
		{"key without material", key("{ kid: a, alg: EdDSA }"), "auth.keys[0]: name exactly one of"},
		{"secret_env and secret_file", key("{ kid: a, alg: HS256, secret_env: A, secret_file: b }"), "auth.keys[0]: name exactly one of"},
		{"secret for EdDSA", key("{ kid: a, alg: EdDSA, secret_env: A }"), "HS256 takes secret_env or secret_file"},
		{"public key for HS256", key("{ kid: a, alg: HS256, public_key_file: a.pub }"), "HS256 takes secret_env or secret_file"},
		{"issuer without a name", issuer("{ jwks_url: \"https://idp.example\" }"), "auth.issuers[0].issuer: must not be empty"},
		{"keys over plain http", issuer("{ issuer: i, jwks_url: \"http://idp.example/keys\" }"), "use https"},
		{"relative URL", issuer("{ issuer: i, jwks_url: keys.json }"), "is not an absolute https URL"},
		{"password in a URL", issuer("{ issuer: i, jwks_url: \"https://u:p@idp.example\" }"), "must not contain a user name or password"},
		{"certificate without key", "tls: { cert_file: a.crt }\n", "cert_file and key_file belong together"},
		{"public listener without tokens", "listen: 0.0.0.0:8080\n", "or set auth.mode jwt"},
		{"rate is not a number", "limits: { classify: { rps: often } }\n", `limits.classify.rps: "often" is not auto`},
		{"negative rate", "limits: { classify: { rps: -1 } }\n", "limits.classify.rps"},
		{"burst 0", "limits: { fallback_answer: { burst: 0 } }\n", "limits.fallback_answer.burst: must be from 1 to 1000000, got 0"},
		{"negative budget", "limits: { llm_tokens_per_hour: -1 }\n", "limits.llm_tokens_per_hour"},
		{"budget below one call", "limits: { llm_tokens_per_hour: 300 }\n", "so the model would never be asked"},
		{"not a range", "dispatch: { allow_private: [everything] }\n", `dispatch.allow_private: "everything" is not a range`},
		{"host bits in a range", "dispatch: { allow_private: [10.1.2.3/16] }\n", "the range is 10.1.0.0/16"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := Load(writeFile(t, "caprouter.yaml", tc.content), noEnv)
			if err == nil {
				err = cfg.Validate()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
	for _, good := range []string{
		"listen: 0.0.0.0:8443\nauth: { mode: jwt }\n",
		"limits: { classify: { rps: 0.5, burst: 3 }, fallback_answer: { rps: 0 } }\n",
		"dispatch: { allow_private: [10.0.0.0/8, 192.168.1.7, \"fd00::/8\"] }\n",
		issuer("{ issuer: i, jwks_url: \"http://127.0.0.1:9000/keys\" }"),
	} {
		cfg, err := Load(writeFile(t, "caprouter.yaml", good), noEnv)
		if err == nil {
			err = cfg.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	if _, err := Load(writeFile(t, "caprouter.yaml", "listen: 127.0.0.1:0\n"), func(name string) (string, bool) { return "x", name == "CAPROUTER_AUTH_KEYS" }); err == nil || !strings.Contains(err.Error(), "CAPROUTER_AUTH_KEYS: a list of sections can only be written in the file") {
		t.Errorf("sections in an environment variable: got %v", err)
	}
}
