package strictjson

import "testing"

func TestReplaceInvalidUTF8_RepairsTextsOnly(t *testing.T) {
	for _, tt := range []struct {
		doc, want string // "" = rejected
		isJSON    bool
	}{
		{`{"a":[1.50,"é"]}`, `{"a":[1.50,"é"]}`, true},
		{"{\"a\":\"caf\xe9\"}", `{"a":"caf` + "\uFFFD" + `"}`, true},
		{`{"a":"\ud800!"}`, `{"a":"` + "\uFFFD" + `!"}`, true},
		{`{"a":"\ud83d\ude00"}`, `{"a":"😀"}`, true},
		{`{"a":1,"a":2}`, "", true},
		{`{"a":NaN}`, "", false},
		{"{\"a\":\"\x01\"}", "", false},
		{`{"a":1} b`, "", false},
		{``, "", false},
	} {
		got, err := ReplaceInvalidUTF8([]byte(tt.doc))
		if string(got) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("ReplaceInvalidUTF8(%q): got %q and error %v, want %q", tt.doc, got, err, tt.want)
		}
		if got := IsJSON([]byte(tt.doc)); got != tt.isJSON {
			t.Errorf("IsJSON(%q) = %t, want %t", tt.doc, got, tt.isJSON)
		}
	}
}
