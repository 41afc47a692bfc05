package strictyaml

import "testing"

const placed = `version: 1
clients:
  a:
    intents: [x, "é", z]
  b: {max_tokens: 1,
      domains: [d]}
`

func parsed(t *testing.T, file string) *Document {
	t.Helper()
	d, err := Parse("f.yaml", []byte(file))
	if err != nil {
		t.Fatalf("Parse: got error %v, want none", err)
	}
	return d
}

func TestPos_FindsNearestValue(t *testing.T) {
	d := parsed(t, placed)
	tests := []struct {
		name         string
		at           Path
		line, column int
	}{
		{"root", At(), 1, 1},
		{"value", At("version"), 1, 10},
		{"mapping", At("clients", "a"), 4, 5},
		{"item", At("clients", "a", "intents", 2), 4, 23},
		{"flow", At("clients", "b", "domains", 0), 6, 17},
		{"absent key: the mapping", At("clients", "a", "priority"), 4, 5},
		{"absent key, further in", At("clients", "c", "match", "intent", 0), 3, 3},
		{"index out of range: the list", At("clients", "a", "intents", 3), 4, 14},
		{"negative index", At("clients", "a", "intents", -1), 4, 14},
		{"index into a mapping", At("clients", 0), 3, 3},
		{"key of a list", At("clients", "a", "intents", "x"), 4, 14},
		{"inside a scalar", At("version", "x"), 1, 10},
		{"step of another type", At(1.5), 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if line, column := d.Pos(tt.at...); line != tt.line || column != tt.column {
				t.Errorf("Pos(%v) = %d:%d, want %d:%d", tt.at, line, column, tt.line, tt.column)
			}
		})
	}
}

func TestErrorf_ReportsPosition(t *testing.T) {
	d := parsed(t, placed)
	d.Errorf(At("clients", "b", "max_tokens"), "must be at least %d", 2)
	d.Errorf(At("clients", "a", "priority"), "is missing")
	d.KeyErrorf(At("clients", "b"), "is a bad name")
	d.KeyErrorf(At("clients", "a", "intents", 1), "an item has no key")
	d.KeyErrorf(At(), "nor has the file")
	checkErrors(t, d.Err(),
		"1:1: nor has the file",
		"4:5: is missing",
		"4:18: an item has no key",
		"5:3: is a bad name",
		"5:19: must be at least 2",
	)
}

// If Decode rejected a value, Errorf reports no second error for its zero value.
func TestErrorf_SkipsInvalidValues(t *testing.T) {
	d := parsed(t, "version: x\nlimits:\n  intent: [a]\nclients: {a: {max_tokens: 1}, b: &b {max_tokens: 2}}\n")
	var v settings
	if err := d.Decode(&v); err == nil {
		t.Fatal("Decode: got no error")
	}
	d.Errorf(At("version"), "must be 1")
	d.Errorf(At("limits", "intents"), "is missing")
	d.Errorf(At("clients", "a", "max_tokens"), "is too small")
	d.Errorf(At("clients", "b"), "was passed over")
	d.Errorf(At("clients", "b", "max_tokens"), "and so was this")
	checkErrors(t, d.Err(),
		`1:10: must be a whole number in decimal, got the text "x"`,
		`3:3: unknown key "intent"; did you mean "intents"?`,
		`4:27: is too small`,
		`4:34: anchors (&b) are not supported; remove it`,
	)
}

func TestIsInvalid_ConsidersNearestValue(t *testing.T) {
	d := parsed(t, "limits:\n  intent: [a]\nclients: {a: {max_tokens: 1}, b: {max_tokens: x}}\n")
	var v settings
	if err := d.Decode(&v); err == nil {
		t.Fatal("Decode: got no error")
	}
	for _, tt := range []struct {
		at   Path
		want bool
	}{
		{At("limits", "intents"), true}, // absent, next to a misspelt key
		{At("clients", "a", "max_tokens"), false},
		{At("clients", "a", "priority"), false},
		{At("clients", "b", "max_tokens"), true},
		{At("clients", "b"), true}, // in part
	} {
		if got := d.IsInvalid(tt.at...); got != tt.want {
			t.Errorf("%v: got %t, want %t", tt.at, got, tt.want)
		}
	}
}

func TestError_TextContainsPosition(t *testing.T) {
	for _, tt := range []struct {
		err  Error
		want string
	}{
		{Error{File: "a.yaml", Line: 3, Column: 5, Detail: "is wrong"}, "a.yaml:3:5: is wrong"},
		{Error{File: "a.yaml", Detail: "is empty"}, "a.yaml: is empty"},
		{Error{Line: 3, Column: 5, Detail: "is wrong"}, "3:5: is wrong"},
		{Error{Detail: "is wrong"}, "is wrong"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("Error() = %q, want %q", got, tt.want)
		}
	}
}
