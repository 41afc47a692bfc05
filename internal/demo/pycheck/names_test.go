package pycheck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// only parses a source of one statement at the top and returns it.
func only(t *testing.T, src string) *stmt {
	t.Helper()
	p := parse(src)
	if len(p.top) == 0 {
		t.Fatalf("%q has no statement", src)
	}
	return p.top[0]
}

// find returns the index of the token with the text.
func (s *stmt) find(t *testing.T, text string) int {
	t.Helper()
	for i, tok := range s.toks {
		if tok.text == text {
			return i
		}
	}
	t.Fatalf("no token %q in %v", text, s.toks)
	return -1
}

func TestChain(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"a method of a name", "df.end()", "df"},
		{"calls between", "df.filter(x).limit(5).end()", "limit filter df"},
		{"attributes between", "df.write.mode('a').end()", "mode write df"},
		{"subscripts between", "rows[0].items[1:2].end()", "items rows"},
		{"over lines", "(\n    df\n    .a(1)\n    .end()\n)", "a df"},
		{"arguments have chains of their own", "df.a(other.b(c)).end()", "a df"},
		{"of an expression", "(a + b).end()", ""},
		{"of a literal", "'x'.end()", ""},
		{"unbalanced", "a).end()", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := only(t, tt.src)
			if got := strings.Join(s.chain(s.find(t, "end")-1), " "); got != tt.want {
				t.Errorf("chain of %q: got %q, want %q", tt.src, got, tt.want)
			}
		})
	}
}

// A chain as long as the source is looked at a little way only.
func TestChainIsBounded(t *testing.T) {
	s := only(t, "x"+strings.Repeat(".a()", 1000)+".end()")
	if got := len(s.chain(s.find(t, "end") - 1)); got != maxChain {
		t.Errorf("%d names, want %d", got, maxChain)
	}
}

func TestAssigned(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"one name", "x = 1", "x"},
		{"several", "x, y = f()", "x y"},
		{"in brackets", "(x, *y) = f()", "x y"},
		{"annotated", "x: int = 1", "x"},
		{"a for loop", "for k, v in f(a=1):\n  pass", "k v"},
		{"attributes bind nothing", "x.a = 1", ""},
		{"subscripts bind nothing", "x[a] = 1", ""},
		{"a keyword argument is none", "f(a=1)", ""},
		{"a comparison is none", "x == 1", ""},
		{"augmented", "x += 1", ""},
		{"a dict", "{a: 1}", ""},
		{"a header", "if x:\n  pass", ""},
		{"nothing", "pass", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := only(t, tt.src)
			var got []string
			for _, i := range s.assigned() {
				got = append(got, s.toks[i].text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("assigned by %q (-want +got):\n%s", tt.src, diff)
			}
		})
	}
}

func TestImported(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"a module", "import a", "a(a)"},
		{"a module inside another", "import a.b.c", "a(a.b.c)"},
		{"renamed", "import a.b as c", "c(a.b as c)"},
		{"several", "import a, b as c", "a(a) c(b as c)"},
		{"from", "from a import b, c as d", "b(b) d(c as d)"},
		{"from, in brackets", "from a import (\n  b,\n  c,\n)", "b(b) c(c)"},
		{"relative", "from ..a import b", "b(b)"},
		{"meant for others", "from a import b as b", ""},
		{"the future", "from __future__ import annotations", ""},
		{"everything", "from a import *", ""},
		{"unfinished", "from a", ""},
		{"unfinished list", "import", ""},
		{"no import", "a = 1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, b := range imported(only(t, tt.src)) {
				got = append(got, fmt.Sprintf("%s(%s)", b.name, b.from))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("names bound by %q (-want +got):\n%s", tt.src, diff)
			}
		})
	}
}

func TestUnquote(t *testing.T) {
	for literal, want := range map[string]string{
		`"a"`: "a", `'a'`: "a", `"""a"""`: "a", `'''a"b'''`: `a"b`, `rb"a"`: "a", `F'{x}'`: "{x}", `"a`: "a", `""`: "", `"""`: "",
	} {
		if got := unquote(literal); got != want {
			t.Errorf("unquote(%s) = %q, want %q", literal, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	var got []string
	words("a.b + c[1] or größe2 .d x1", func(w string) { got = append(got, w) })
	if diff := cmp.Diff([]string{"a", "c", "or", "größe2", "x1"}, got); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
}

func TestDefined(t *testing.T) {
	for src, want := range map[string]string{
		"def f(): pass": "f", "async def g(): pass": "g", "class A(B): pass": "A", "class C: pass": "C", "x = 1": "", "def": "", "async": "", "async with a: pass": "",
	} {
		if got, _ := only(t, src).defined(); got != want {
			t.Errorf("defined by %q: got %q, want %q", src, got, want)
		}
	}
}

func TestFrames(t *testing.T) {
	const src = `a = spark.table("a")
b = a.filter("x").cache()
a.count()
b.count()
b.unpersist()
c = spark.read.csv("c").count()
a = a.limit(3)
display(b.groupBy("x").count())
d = 1
a.filter("y").write.save("p")
`
	var got []string
	for _, f := range frames(parse(src)) {
		got = append(got, fmt.Sprintf("%s line %d kept %v freed %v runs %v", f.name, f.line, f.kept, f.freed, f.runs))
	}
	want := []string{
		"a line 1 kept false freed false runs [3 10]",
		"b line 2 kept true freed true runs [4 8]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
}
