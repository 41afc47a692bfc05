package pycheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show renders tokens as their texts, "⏎" for the end of a logical line.
func show(tokens []token) string {
	var out []string
	for _, t := range tokens {
		if t.kind == newline {
			t.text = "⏎"
		}
		out = append(out, t.text)
	}
	return strings.Join(out, " ")
}

func TestLex(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"a statement", "x = f(1, 'a')", "x = f ( 1 , 'a' ) ⏎"},
		{"comments and blank lines", "# a\n\nx  # b\n", "x ⏎"},
		{"brackets join lines", "x = [\n  1,  # one\n\n  2]\ny", "x = [ 1 , 2 ] ⏎ y ⏎"},
		{"a backslash joins lines", "x = 1 + \\\n  2\n", "x = 1 + 2 ⏎"},
		{"long operators", "a //= b ** c -> d := e ... f", "a //= b ** c -> d := e ... f ⏎"},
		{"numbers", "1e-5 0xE+1 1_000.5 .5 1.5e3.x 3j", "1e-5 0xE + 1 1_000.5 .5 1.5e3 . x 3j ⏎"},
		{"string prefixes", `rb'a' Rf"b" u'c' zz'd'`, `rb'a' Rf"b" u'c' zz 'd' ⏎`},
		{"quotes inside", `'a"b' "a'b" '''a'b''' `, `'a"b' "a'b" '''a'b''' ⏎`},
		{"escaped quote", `'a\'b' r'\' + x'`, `'a\'b' r'\' + x' ⏎`},
		{"a string over lines", "x = '''a\nb'''\ny", "x = '''a\nb''' ⏎ y ⏎"},
		{"a comment sign in a string", "x = '#no' # yes", "x = '#no' ⏎"},
		{"identifiers in any script", "größe = 名前", "größe = 名前 ⏎"},
		{"magics are skipped", "%pip install x\n!ls\nx % y", "x % y ⏎"},
		{"an f-string", `f"{x!r:>{w}}" y`, `f"{x!r:>{w}}" y ⏎`},
		{"the same quote inside an f-string", `f"{d["a"]}" y`, `f"{d["a"]}" y ⏎`},
		{"a nested f-string", `f"{f"{f"{1}"}"}" y`, `f"{f"{f"{1}"}"}" y ⏎`},
		{"doubled braces", `f"{{x}}" y`, `f"{{x}}" y ⏎`},
		{"a raw f-string with a brace", `rf'(\{{)' y`, `rf'(\{{)' y ⏎`},
		{"a character by name", `f"\N{EM DASH}{x}" y`, `f"\N{EM DASH}{x}" y ⏎`},
		{"a field over lines", "f\"{\n  x\n}\" y", "f\"{\n  x\n}\" y ⏎"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := lex(tt.src)
			if got := show(l.tokens); got != tt.want {
				t.Errorf("tokens:\n got %q\nwant %q", got, tt.want)
			}
			if len(l.problems) > 0 {
				t.Errorf("problems %v, want none", l.problems)
			}
		})
	}
}

func TestLexNotesProblemsAndGoesOn(t *testing.T) {
	tests := []struct {
		name, src, want string
		problems        []problem
	}{
		{"an open string ends with its line", "x = 'a\ny = 1\n", "x = 'a ⏎ y = 1 ⏎", []problem{{1, ruleString, "the string is never closed"}}},
		{"an open f-string too", "x = f\"{a\ny = 1\n", "x = f\"{a ⏎ y = 1 ⏎", []problem{{1, ruleString, "the string is never closed"}}},
		{"an open long string takes the rest", "x = '''a\ny\n", "x = '''a\ny\n ⏎", []problem{{1, ruleString, "the string is never closed"}}},
		{"an open bracket ends before a def", "x = (1,\ndef f():\n", "x = ( 1 , ⏎ def f ( ) : ⏎", []problem{{1, ruleBracket, "“(” is never closed"}}},
		{"an open bracket at the end", "x = [1\n", "x = [ 1 ⏎", []problem{{1, ruleBracket, "“[” is never closed"}}},
		{"a stray bracket", "x = 1)\n", "x = 1 ) ⏎", []problem{{1, ruleBracket, "“)” closes nothing"}}},
		{"crossed brackets", "x = (1]\n", "x = ( 1 ] ⏎", []problem{{1, ruleBracket, "“]” closes “(”"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := lex(tt.src)
			if got := show(l.tokens); got != tt.want {
				t.Errorf("tokens:\n got %q\nwant %q", got, tt.want)
			}
			if diff := cmp.Diff(tt.problems, l.problems, cmp.AllowUnexported(problem{})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokenLines(t *testing.T) {
	l := lex("a\nb = '''x\ny''' + \\\n  c\nd\n")
	want := map[string][2]int{"a": {1, 1}, "b": {2, 2}, "'''x\ny'''": {2, 3}, "+": {3, 3}, "c": {4, 4}, "d": {5, 5}}
	for _, tok := range l.tokens {
		if w, ok := want[tok.text]; ok && (tok.line != w[0] || tok.end != w[1]) {
			t.Errorf("%q spans lines %d to %d, want %d to %d", tok.text, tok.line, tok.end, w[0], w[1])
		}
	}
}

func TestFields(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string
	}{
		{"none", `f"a"`, nil},
		{"plain strings have none", `"{a}"`, nil},
		{"two", `f"{a} and {b.c}"`, []string{"a", "b.c"}},
		{"with a format", `f"{a:>{w}.2f}"`, []string{"a:>{w}.2f"}},
		{"with braces inside", `f"{ {'k': v}['k'] }"`, []string{" {'k': v}['k'] "}},
		{"of a nested one", `f"{f'{x}'}"`, []string{"f'{x}'"}},
		{"doubled braces are text", `f"{{a}} {b}"`, []string{"b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := lex(tt.src).tokens[0].fields
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// tree renders statements by depth, one a line.
func tree(block []*stmt, depth int) string {
	var b strings.Builder
	for _, s := range block {
		var words []string
		for _, t := range s.toks {
			words = append(words, t.text)
		}
		b.WriteString(strings.Repeat("  ", depth) + strings.Join(words, " ") + "\n" + tree(s.body, depth+1))
	}
	return b.String()
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"blocks", "if a:\n  b\n  if c:\n    d\n  e\nelse:\n  f\ng\n", "if a\n  b\n  if c\n    d\n  e\nelse\n  f\ng\n"},
		{"a block on its line", "if a: b; c\nd\n", "if a\n  b\n  c\nd\n"},
		{"colons that open nothing", "x: int = 3\ny = {1: 2}\nz = lambda: 4\n", "x : int = 3\ny = { 1 : 2 }\nz = lambda : 4\n"},
		{"a lambda in a header", "while lambda: 1:\n  x\n", "while lambda : 1\n  x\n"},
		{"a slice in a header", "if x[1:2]:\n  y\n", "if x [ 1 : 2 ]\n  y\n"},
		{"match as a statement and as a name", "match x:\n  case 1:\n    y\nmatch = 1\ncase: int = 2\n", "match x\n  case 1\n    y\nmatch = 1\ncase : int = 2\n"},
		{"tabs and spaces", "if a:\n\tb\n        c\n", "if a\n  b\n  c\n"},
		{"async", "async def f():\n  async for x in y:\n    pass\n", "async def f ( )\n  async for x in y\n    pass\n"},
		{"indented as a whole", "  if a:\n    b\n  c\n", "if a\n  b\nc\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := parse(tt.src)
			if diff := cmp.Diff(tt.want, tree(p.top, 0)); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}
			if len(p.problems) > 0 {
				t.Errorf("problems %v, want none", p.problems)
			}
		})
	}
}

// Quotes that are missing on every line must not make the lexer read the
// source over and over.
func TestMissingQuotesCostLittle(t *testing.T) {
	l := lex(strings.Repeat("f\"{\n", 10_000))
	if l.wasted > maxWaste+maxSpill {
		t.Errorf("%d bytes were read in vain, want at most %d", l.wasted, maxWaste+maxSpill)
	}
	if len(l.problems) != 10_000 {
		t.Errorf("%d strings are reported open, want 10000", len(l.problems))
	}
}
