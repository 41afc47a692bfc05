package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const testKey = "sk-test/7Hq+2=canary"

// No format prints a key or a struct with a key.
func TestSecret_IsNeverPrinted(t *testing.T) {
	secret := llm.NewSecret(testKey)
	type unexported struct{ key llm.Secret }
	cfg := llm.Config{Provider: "openai", APIKey: secret}
	for name, value := range map[string]any{
		"itself":              secret,
		"pointer":             &secret,
		"in a configuration":  cfg,
		"in a pointer to one": &cfg,
		"unexported field":    unexported{secret},
		"in a slice":          []llm.Secret{secret},
		"in a map":            map[string]llm.Secret{"key": secret},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p"} {
				fmt.Fprintf(&out, verb+"\n", value)
			}
			std, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			ours, _ := strictjson.Marshal(value) // refuses a struct without exported fields
			var log bytes.Buffer
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", value)
			slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", value)
			text := out.String() + string(std) + string(ours) + log.String()
			for _, form := range []string{testKey, fmt.Sprintf("%x", testKey), fmt.Sprintf("%X", testKey), "canary"} {
				if strings.Contains(text, form) {
					t.Errorf("got the key as %q in:\n%s", form, text)
				}
			}
		})
	}
}

func TestSecret(t *testing.T) {
	none, some := llm.NewSecret(" \n"), llm.NewSecret(testKey+"\r\n")
	if none.IsSet() || none.Reveal() != "" || none.String() != "" {
		t.Errorf("no key: got set %v, %q, printed %q; want none of it", none.IsSet(), none.Reveal(), none)
	}
	if !some.IsSet() || some.Reveal() != testKey || some.String() != "<redacted>" {
		t.Errorf("key: got set %v, %q, printed %q", some.IsSet(), some.Reveal(), some)
	}
	if got := fmt.Sprintf("%v|%#v|%s", some, some, some); got != "<redacted>|<redacted>|<redacted>" {
		t.Errorf("got %q printed", got)
	}
}

func ExampleSecret() {
	key := llm.NewSecret("sk-very-secret")
	fmt.Println(key)
	fmt.Printf("%+v\n", llm.Config{Provider: "openai", APIKey: key})
	// Output:
	// <redacted>
	// {Provider:openai Model: BaseURL: APIKey:<redacted> KeyEnv: ResponseFormat: Temperature:0 Thinking: AllowPlainHTTP:false Version:}
}
