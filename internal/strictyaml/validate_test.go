package strictyaml

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocument_Validate(t *testing.T) {
	type part struct {
		Words []string `yaml:"words" validate:"dive,lower"`
		Share *float64 `yaml:"share" validate:"omitempty,range=0 1.1"`
		Count int      `yaml:"count" synonym:"number" validate:"range=-1 8"`
		Kind  string   `yaml:"kind" validate:"omitempty,oneof=a b"`
	}
	type file struct {
		Part part `yaml:"part"`
	}
	rules, err := NewValidator(map[string]Rule{"lower": {Problem: func(text, _ string) string {
		if text == strings.ToLower(text) {
			return ""
		}
		return "must be in lower case"
	}}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, part, want string }{
		{"valid", "{words: [x], share: 1.1, count: -1, kind: b}", ""},
		{"absent", "{}", ""},
		{"item of a list", "{words: [x, Y]}", "f.yaml:1:19: must be in lower case"},
		{"range through a pointer", "{share: 1.2}", "f.yaml:1:15: must be from 0 to 1.1, got 1.2"},
		{"range under the second name", "{number: 9}", "f.yaml:1:16: must be from -1 to 8, got 9"},
		{"one of", "{kind: c}", `f.yaml:1:14: must be a or b, got "c"`},
		{"reported by Decode already", "{count: x}", `f.yaml:1:15: must be a whole number in decimal, got the text "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Parse("f.yaml", []byte("part: "+tt.part+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			var f file
			_ = doc.Decode(&f)
			doc.Validate(At("part"), &f.Part, rules)
			got := ""
			if err := doc.Err(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
	doc, err := Parse("f.yaml", []byte("part: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	doc.Validate(At("part"), 7, rules)
	if err := doc.Err(); err == nil || !strings.Contains(err.Error(), "cannot be checked") {
		t.Errorf("got error %v for a number, want that it cannot be checked", err)
	}
}
