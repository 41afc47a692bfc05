package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func printed(draw func(*page)) string {
	p := newPage(printOpts{width: 60})
	draw(p)
	return p.String()
}

func TestPageField(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"short", "text", "  label       text\n"},
		{"nothing", "", "  label\n"},
		{"two lines of text", "a\nb", "  label       a; b\n"},
		{
			"wrapped", strings.Repeat("word ", 12),
			"  label       word word word word word word word word word\n              word word word\n",
		},
	}
	for _, tt := range tests {
		got := printed(func(p *page) { p.field("label", tt.text, none) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPageList(t *testing.T) {
	tests := []struct {
		name  string
		items []string
		want  string
	}{
		{"nothing", nil, ""},
		{"one", []string{"a b"}, "  label       a b\n"},
		{"several", []string{"a b", "c"}, "  label       a b, c\n"},
		{
			"broken between items",
			[]string{"twenty characters, or", "twenty characters or so", "c"},
			"  label       twenty characters, or,\n              twenty characters or so, c\n",
		},
		{
			"one that is too long",
			[]string{"a", strings.Repeat("x", 50), "c"},
			"  label       a,\n              " + strings.Repeat("x", 46) + "\n              xxxx,\n              c\n",
		},
	}
	for _, tt := range tests {
		got := printed(func(p *page) { p.list("label", tt.items, ",", none) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestPageTable(t *testing.T) {
	rows := []row{
		{cells: []cell{{text: "1"}, {text: "代码"}, {text: "0.8", right: true}, {text: "last"}}},
		{
			cells: []cell{{text: "10"}, {text: "b"}, {text: "−0.25", right: true}, {text: "one that does not fit beside the others"}},
			below: []cell{{text: "below\nit"}},
		},
		{cells: []cell{{text: "alone"}}},
	}
	want := `  label       1      代码    0.8  last
              10     b     −0.25
                     one that does not fit beside the others
                     below; it
              alone
`
	got := printed(func(p *page) { p.table("label", rows) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := printed(func(p *page) { p.table("label", nil) }); got != "" {
		t.Errorf("no rows: got %q, want nothing", got)
	}
}

func TestPagePaint(t *testing.T) {
	plain, colour := newPage(printOpts{width: 60}), newPage(printOpts{width: 60, colour: true})
	tests := []struct {
		name string
		page *page
		s    style
		text string
		want string
	}{
		{"colour", colour, red, "x", "\x1b[31mx\x1b[0m"},
		{"no style", colour, none, "x", "x"},
		{"no text", colour, red, "", ""},
		{"no colours", plain, red, "x", "x"},
	}
	for _, tt := range tests {
		if got := tt.page.paint(tt.s, tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
