package pycheck

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestReportCounts(t *testing.T) {
	tests := []struct {
		name        string
		src         string
		lines, code int
	}{
		{"empty", "", 1, 0},
		{"one line", "x = 1", 1, 1},
		{"with line end", "x = 1\n", 1, 1},
		{"comments and blanks", "# a\n\nx = 1\n\n# b\n", 5, 1},
		{"a string over lines", "x = '''a\nb\nc'''\n", 3, 3},
		{"brackets over lines", "f(\n    1,\n\n)\n", 4, 3},
		{"two statements on a line", "a = 1; b = 2\nif a: b = 3\n", 2, 2},
		{"other line ends", "a = 1\r\nb = 2\rc = 3\r\n", 3, 3},
		{"byte order mark", "\ufeffa = 1\n", 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Check(tt.src, Options{})
			if r.Lines != tt.lines || r.Code != tt.code {
				t.Errorf("lines %d, code %d; want %d, %d", r.Lines, r.Code, tt.lines, tt.code)
			}
		})
	}
}

func TestFindingsAreBounded(t *testing.T) {
	r := Check(strings.Repeat("eval(x)\n", MaxFindings+7), Options{})
	if len(r.Findings) != MaxFindings || r.Omitted != 7 {
		t.Errorf("%d findings and %d omitted, want %d and 7", len(r.Findings), r.Omitted, MaxFindings)
	}
	if got := r.Summary("x.py"); !strings.Contains(got, "207 findings") || !strings.Contains(got, "and 197 more") {
		t.Errorf("the summary does not count what was left out:\n%s", got)
	}
}

func TestIsNotebook(t *testing.T) {
	tests := []struct {
		name, src string
		want      bool
	}{
		{"exported", "# Databricks notebook source\nx = 1\n", true},
		{"after blank lines", "\n\n# Databricks notebook source\n", true},
		{"a script", "import os\n# Databricks notebook source\n", false},
		{"empty", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := IsNotebook(tt.src); got != tt.want {
				t.Errorf("IsNotebook: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"clean", "x = 1\n", "a.py: nothing to complain about in 1 line.\n"},
		{"one finding", "x == None\n", `a.py: 1 finding in 1 line (0 errors, 1 warning, 0 notes).
     1  warning  none-comparison: “== None” asks the object's own __eq__
`},
		{"by line", "import json\nexec(y)\n", `a.py: 2 findings in 2 lines (1 error, 1 warning, 0 notes).
     1  warning  unused-import: json is imported and never used
     2  error    eval-exec: exec runs whatever its argument says
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Check(tt.src, Options{}).Summary("a.py")); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

// A long report keeps the errors and shows them by line.
func TestSummaryShowsTheWorst(t *testing.T) {
	src := strings.Repeat("x == None\n", 20) + "eval(x)\n"
	got := Check(src, Options{}).Summary("a.py")
	if !strings.Contains(got, "    21  error") || !strings.Contains(got, "and 11 more") {
		t.Errorf("want the error of line 21 and 11 findings left out:\n%s", got)
	}
}

// checkInvariants holds for any bytes at all.
func checkInvariants(t interface {
	Helper()
	Fatalf(string, ...any)
}, src string, opts Options,
) {
	t.Helper()
	r := Check(src, opts)
	if r.Lines < 1 || r.Code < 0 || r.Code > r.Lines || r.Omitted < 0 || len(r.Findings) > MaxFindings {
		t.Fatalf("%d lines, %d of code, %d findings, %d omitted", r.Lines, r.Code, len(r.Findings), r.Omitted)
	}
	for i, f := range r.Findings {
		if f.Line < 1 || f.Line > r.Lines {
			t.Fatalf("%s in line %d of %d", f.Rule, f.Line, r.Lines)
		}
		if i > 0 && f.Line < r.Findings[i-1].Line {
			t.Fatalf("line %d after line %d", f.Line, r.Findings[i-1].Line)
		}
		if f.Message == "" || !utf8.ValidString(f.Message+f.Code) || utf8.RuneCountInString(f.Code) > maxCode {
			t.Fatalf("finding %+v: want a message, UTF-8 and at most %d characters of code", f, maxCode)
		}
	}
	if r.Summary("x") == "" {
		t.Fatalf("the summary is empty")
	}
}

// Python is put together at random from pieces that matter to the lexer.
func TestAnySourceIsTaken(t *testing.T) {
	pieces := []string{
		"def f(x=[]):", "class A:", "if x:", "else:", "try:", "except:", "except Exception:", "pass", "return", "\n", "\n    ", "\n\t", "\n  ",
		"(", ")", "[", "]", "{", "}", ":", ";", ",", ".", "=", "==", "None", "True", "is", "\"", "'", "\"\"\"", "'''", "f\"", "rf'''", "{x", "!r:>{w}}",
		"\\", "\\\n", "#", "# noqa", "@overload", "lambda x: x", "import a.b as c, d", "from . import *", "for i in y:", "df.collect()", "eval(x)", "0x1e+5", "1e-5",
		"é", "名", "\x00", "\xff", "match x:", "case 1:", "async def g(", "%pip", "print(x)", "yield", " ", "x", "5.",
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 80).Draw(t, "parts")
		checkInvariants(t, strings.Join(parts, rapid.SampledFrom([]string{"", " "}).Draw(t, "glue")), Options{Notebook: rapid.Bool().Draw(t, "notebook")})
	})
}

// A blank line before a source moves its findings and changes none of them.
func TestFindingsMoveWithTheSource(t *testing.T) {
	lines := []string{"import json", "def f(x=[]):", "    eval(x)", "    return x == None", "try:", "    f()", "except:", "    pass", "y = f'a'", "list = 1"}
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOf(rapid.SampledFrom(lines)).Draw(t, "lines"), "\n")
		shift := rapid.IntRange(1, 5).Draw(t, "shift")
		want := Check(src, Options{}).Findings
		for i := range want {
			want[i].Line += shift
			// messages may name lines; the first def's line moves as well
			want[i].Message = ""
		}
		got := Check(strings.Repeat("\n", shift)+src, Options{}).Findings
		for i := range got {
			got[i].Message = ""
		}
		if len(src) > 0 && !slices.Equal(got, want) {
			t.Fatalf("moved by %d lines:\n got %v\nwant %v", shift, got, want)
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, src := range []string{
		"", "def f(x=[]):\n    return eval(f\"{x['a']!r:>{w}}\")\n", "x = '''never closed\n", "f\"{\nf\"{\n", "(((\ndef f():\n", "\tif x:\n  y\n",
		"# Databricks notebook source\n%pip install x\ndf = spark.read.table('t')\ndf.count()\nfor i in y:\n    df.collect()\n",
		"a\\\nb\\", "\xff\xfe\x00", "rf'\\{{x}'", "f'\\N{DASH}{x}'", "match x:\n    case 1: pass\n", "lambda: x\nif (lambda: 1)(): pass\n", "@",
	} {
		f.Add(src, false)
		f.Add(src, true)
	}
	f.Fuzz(func(t *testing.T, src string, notebook bool) {
		checkInvariants(t, src, Options{Notebook: notebook})
	})
}

func TestClip(t *testing.T) {
	tests := []struct {
		name, s, want string
	}{
		{"short", "abc", "abc"},
		{"exact", "abcde", "abcde"},
		{"long", "abcdef", "abcd…"},
		{"in characters", "名名名名名", "名名名名名"},
		{"long in characters", "名名名名名名", "名名名名…"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := clip(tt.s, 5); got != tt.want {
				t.Errorf("clip(%q, 5) = %q, want %q", tt.s, got, tt.want)
			}
		})
	}
}
