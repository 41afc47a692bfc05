package token

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFenceAt marks in each text the info line (<…>) and the end (|) of the first block.
func TestFenceAt(t *testing.T) {
	tests := []struct{ name, marked string }{
		{"plain", "```<>\ncode\n```|"},
		{"with a language", "```<go>\ncode\n```| behind"},
		{"empty", "```<>\n```|"},
		{"in the middle of a line", "see ```<py>\ncode\n```| behind"},
		{"closed in the middle of a line", "```<>\ncode```| behind"},
		{"closed by more", "```<>\ncode\n`````| behind"},
		{"longer, with a shorter one inside", "````<>\n```\n````|"},
		{"open to the end", "```<>\ncode\n|"},
		{"open and indented", "a\n  ```<>\ncode|"},
		{"open, only an info line", "```<go|>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.NewReplacer("<", "", ">", "", "|", "").Replace(tt.marked)
			f, ok := FenceAt(text, strings.Index(text, "```"))
			if !ok {
				t.Fatalf("%q: got no block, want one", text)
			}
			got := mark(text, f)
			if got != tt.marked {
				t.Errorf("got %q, want %q", got, tt.marked)
			}
		})
	}
}

func mark(text string, f FencedBlock) string {
	if f.End == f.bodyStart { // both at the end of the text
		return text[:f.infoStart] + "<" + text[f.infoStart:f.End] + "|>"
	}
	return text[:f.infoStart] + "<" + text[f.infoStart:f.bodyStart] + ">" + text[f.bodyStart:f.End] + "|" + text[f.End:]
}

func TestFenceAt_NoFence(t *testing.T) {
	for name, text := range map[string]string{
		"one backtick":                "`code`",
		"two":                         "``code``",
		"quoted on a line":            "```code``` behind\n",
		"quoted, and a block later":   "```code``` and\n```\nblock\n```",
		"unpaired backtick in a line": "use ``` for code\nand review it",
	} {
		if f, ok := FenceAt(text, strings.Index(text, "`")); ok {
			t.Errorf("%s: got block %+v in %q, want none", name, f, text)
		}
	}
}

// TestFenceAt_StaysInsideText checks that a block is inside the text and not shorter than its
// backticks, so that a scanner always advances.
func TestFenceAt_StaysInsideText(t *testing.T) {
	piece := rapid.SampledFrom([]string{"```", "````", "`", "a", " ", "\n", "é"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 1, 20).Draw(t, "pieces"), "")
		for at := range len(text) {
			f, ok := FenceAt(text, at)
			if ok && (at+3 > f.infoStart || f.infoStart > f.bodyStart || f.bodyStart > f.End || f.End > len(text)) {
				t.Fatalf("%q at %d: got %+v, want it in order inside %d bytes", text, at, f, len(text))
			}
		}
	})
}
