package explain

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/cli/terminal"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// FuzzPrintResponse prints any response of a server at --url: it must not panic, and must not let
// the response control the terminal.
func FuzzPrintResponse(f *testing.F) {
	examples, err := filepath.Glob("../../rest/examples/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range examples {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), "a prompt", 100)
	}
	f.Add(`{"status":"\u001b[2J","decision":{"candidates":[{"subtask":-9,"score":1e300,"role":"chosen"}]}}`, "\x1b\u202e", 0)
	f.Add(`{"tasks":[{}],"omitted":[{}],"data":{"answer":"- \n1. \n  ","results":[{"data":{"\u0007":1}}],"reason":"","nearest":[{}],"examples":["\n"]}}`, "", 50)
	f.Add(`{"request_id":"\u001b[2J","data":{"mode":"clarification","question":"\n","because":"\u0007","options":[{"id":"\t","label":"\u001b"}]}}`, "", 50)
	f.Add(`{"decision":{"classification":{"reason":"\u001b","provider":"\u001b","calls":[{"purpose":"\u0007","outcome":"\u0007","detail":"\n","reply":"{\r\n\u001b[8m"}]}}}`, "", 50)
	f.Add(`{"data":{"mode":"agent_proposal","proposal":{"nearest_reading":{"agent_id":"\u001b[2J\n","intent":"\u0007"}}}}`, "\u001b[2J", 50)
	f.Fuzz(func(t *testing.T, body, prompt string, width int) {
		var resp contract.Response
		if strictjson.UnmarshalAllowUnknown([]byte(body), &resp) != nil {
			return
		}
		var out, errOut bytes.Buffer
		const teach = `caprouter teach "…"`
		PrintResponse(&out, &resp, Options{Prompt: prompt, Base: someBase, Teach: teach, Options: terminal.Options{Width: min(max(width, terminal.MinWidth), terminal.MaxWidth)}})
		answer := resp.Data.Answer
		resp.Data.Answer, resp.Data.Results = "", nil // printed without changes if the output is not a terminal
		resp.Decision = nil
		if err := PrintAnswer(&errOut, &errOut, &resp, someBase, teach); err != nil {
			t.Fatal(err)
		}
		controls := func(r rune) bool { return r != '\n' && unicode.IsControl(r) }
		for name, text := range map[string]string{"decision": out.String(), "complaints": errOut.String()} {
			if i := strings.IndexFunc(text, controls); i >= 0 {
				t.Errorf("%s of answer %q: got a control character in %q", name, answer, text[max(i-20, 0):])
			}
		}
	})
}
