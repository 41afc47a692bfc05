package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestPrune_ReplacesDeepValues(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`[1,{"a":"b"}]`, `[1,{"a":"b"}]`},
		{`[[[]]]`, `[[null]]`},
		{`[[[[]]]]`, `[[null]]`},
		{`{"a":{"b":{"c":[1,{}]},"d":2},"e":[3]}`, `{"a":{"b":null,"d":2},"e":[3]}`},
		{`[[[1],[2]],"x"]`, `[[null,null],"x"]`},
		{`["[[[","\"[[[",{"a":"\\"}]`, `["[[[","\"[[[",{"a":"\\"}]`},
		{`[[["]","\"]"]]]`, `[[null]]`},
	} {
		got, changed := prune([]byte(tt.doc), 2)
		if string(got) != tt.want || changed != (tt.doc != tt.want) {
			t.Errorf("prune(%s): got %s and %t, want %s", tt.doc, got, changed, tt.want)
		}
	}
}

// Every document that nests at most as deep as a message may is returned as it is, and any
// other one becomes a document that is.
func FuzzPrune(f *testing.F) {
	f.Add(`{"a":[{"b":"\"[\\"},[[[1]]]]}`, 3)
	f.Add(strings.Repeat("[", 40)+strings.Repeat("]", 40), 20)
	f.Fuzz(func(t *testing.T, doc string, limit int) {
		if limit < 1 || limit > 50 || strictjson.Unmarshal([]byte(doc), new(json.RawMessage)) != nil {
			t.Skip("no strict JSON, or an unusual limit")
		}
		pruned, changed := prune([]byte(doc), limit)
		if strictjson.Unmarshal(pruned, new(json.RawMessage)) != nil {
			t.Fatalf("prune(%s, %d): got %s, want JSON", doc, limit, pruned)
		}
		if again, deep := prune(pruned, limit); deep || string(again) != string(pruned) {
			t.Errorf("prune(%s, %d): got %s, which is deeper", doc, limit, pruned)
		}
		if !changed && string(pruned) != doc {
			t.Errorf("prune(%s, %d): got %s, want no change", doc, limit, pruned)
		}
	})
}
