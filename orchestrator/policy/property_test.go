package policy_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/orchestrator/policy"
)

// disguises returns functions that change a text so that its secret is only found after reversing
// them.
func disguises() (spellings, encodings map[string]func(string) string) {
	spellings = map[string]func(string) string{
		"plain": func(s string) string { return s },
		"upper": strings.ToUpper,
		"reversed": func(s string) string {
			b := []byte(s)
			slices.Reverse(b)
			return string(b)
		},
		"separated": func(s string) string { return strings.Join(strings.Split(s, ""), " ") },
		"prefixed":  func(s string) string { return "the value is " + s + ", as agreed" },
	}
	encodings = map[string]func(string) string{
		"none":   func(s string) string { return s },
		"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"url64":  func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
		"percent": func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, "%%%02x", s[i])
			}
			return b.String()
		},
		"escapes": func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, `\u%04x`, s[i])
			}
			return b.String()
		},
	}
	return spellings, encodings
}

func sortedNames[T any](m map[string]T) []string {
	var list []string
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func secretOutput(t *rapid.T, secret string) policy.Step {
	raw, err := json.Marshal(map[string]string{"user": "svc", "password": secret})
	if err != nil {
		t.Fatal(err)
	}
	return policy.Step{Action: "db.get_settings", Arguments: json.RawMessage("{}"), Output: raw}
}

func mustEncode(t *rapid.T, v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A secret of an earlier output is found in every spelling under up to two encodings.
func TestJudge_FindsDisguisedSecrets(t *testing.T) {
	p := parse(t, "")
	spellings, encodings := disguises()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z][A-Za-z0-9]{15,38}[0-9]`).Draw(t, "secret")
		spelling := rapid.SampledFrom(sortedNames(spellings)).Draw(t, "spelling")
		inner := rapid.SampledFrom(sortedNames(encodings)).Draw(t, "inner")
		outer := rapid.SampledFrom(sortedNames(encodings)).Draw(t, "outer")
		text := encodings[outer](encodings[inner](spellings[spelling](secret)))
		v := p.Judge(&policy.Call{
			Server: "chat", Tool: "post_message", Arguments: mustEncode(t, map[string]string{"channel": "c1", "text": text}), Earlier: []policy.Step{secretOutput(t, secret)},
		})
		if v.Effect != policy.Deny {
			t.Fatalf("got %s (%s) for %q, want deny", v.Effect, v.Reason, text)
		}
	})
}

// A secret that is split over arguments or calls is found at its last part at the latest.
func TestJudge_FindsSplitSecrets(t *testing.T) {
	p := parse(t, "")
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-z][A-Za-z0-9]{15,38}[0-9]`).Draw(t, "secret")
		size := rapid.IntRange(6, 11).Draw(t, "size")
		byCall := rapid.Bool().Draw(t, "by call")
		var parts []string
		for part := range slices.Chunk([]byte(secret), size) {
			parts = append(parts, string(part))
		}
		call := policy.Call{Server: "chat", Tool: "post_message", Earlier: []policy.Step{secretOutput(t, secret)}}
		if !byCall {
			call.Arguments = mustEncode(t, map[string]any{"parts": parts})
		}
		blocked := false
		for _, part := range parts {
			if byCall {
				call.Arguments = mustEncode(t, map[string]string{"channel": "c1", "text": part})
			}
			blocked = blocked || p.Judge(&call).Effect == policy.Deny
			call.Earlier = append(call.Earlier, policy.Step{Action: "chat.post_message", Arguments: call.Arguments, Output: json.RawMessage(`"ok"`)})
		}
		if !blocked {
			t.Fatalf("got all parts %q allowed, want one denied", parts)
		}
	})
}
