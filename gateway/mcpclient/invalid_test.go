package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A line that is no message of JSON-RPC is dropped, and a response that is none becomes an error
// of its call, because the library ends the session at both.
func TestRepairLine(t *testing.T) {
	const same, dropped = "same", ""
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                  same,
		`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"m"}}`:           same,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`:       same,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                              same,
		`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"x"}]`: same,
		`{"level":30,"id":1,"msg":"called"}`:                                    dropped,
		`["log"]`:                                                               dropped,
		`[]`:                                                                    dropped,
		`[[{"jsonrpc":"2.0","method":"x"}]]`:                                    dropped,
		`null`:                                                                  dropped,
		`{"jsonrpc":"2.0"}`:                                                     dropped,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`:                   dropped,
		`{"jsonrpc":"2.0","id":{},"result":{}}`:                                                         dropped,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                                           dropped,
		`{"jsonrpc":"1.0","id":1,"result":{}}`:                                                          dropped,
		`{"jsonrpc":"2.0","id":1}`:                                                                      errNoResponse,
		`{"jsonrpc":"2.0","id":1,"Result":{}}`:                                                          errNoResponse,
		`{"jsonrpc":"2.0","id":1,"error":"bad"}`:                                                        errNoResponse,
		`{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}`:                                                   errNoStrictJSON,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`:                                               errNoStrictJSON,
		`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`: errTooDeep,
	} {
		got := string(repairLine([]byte(line)))
		switch want {
		case same:
			want = line
		case dropped:
		default:
			want = string(invalidResult([]byte("1"), want))
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// Every line that is passed on can be decoded by the library.
func FuzzRepairLine(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":7}}`, `[{"jsonrpc":"2.0","method":"x"}]`,
		`{"jsonrpc":"2.0","id":-1e400,"method":"x"}`, `{"id":1,"result":NaN`, `{"jsonrpc":"2.0","id":"` + "\xff" + `","result":null}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := repairLine([]byte(line))
		if got == nil {
			return
		}
		batch := []json.RawMessage{got}
		if got[0] == '[' {
			if err := json.Unmarshal(got, &batch); err != nil || len(batch) == 0 {
				t.Fatalf("%q: got %s, want a batch", line, got)
			}
		}
		for _, message := range batch {
			if _, err := jsonrpc.DecodeMessage(message); err != nil {
				t.Errorf("%q: got %s, which cannot be decoded: %v", line, got, err)
			}
		}
	})
}
