package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTextWidth_CountsColumns(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"accents", "código", 6},
		{"combining accent", "co\u0301digo", 6},
		{"Cyrillic", "проверка", 8},
		{"Chinese", "代码审查", 8},
		{"Japanese", "コードレビュー", 14},
		{"Korean", "코드 리뷰", 9},
		{"full-width letters", "ＡＢ", 4},
		{"emoji", "🚀", 2},
		{"dashes and signs", "− … · ✓ ✗", 9},
	}
	for _, tt := range tests {
		if got := TextWidth(tt.text); got != tt.want {
			t.Errorf("%s: got %d columns for %q, want %d", tt.name, got, tt.text, tt.want)
		}
	}
}

func TestPrintable_ReplacesControlCharacters(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"plain", "a b\nc", "a b\nc"},
		{"tab", "a\tb", "a    b"},
		{"Windows line end", "a\r\nb", "a\nb"},
		{"escape sequence", "\x1b[31mred", "\ufffd[31mred"},
		{"one-byte CSI", "\u009b31m", "\ufffd31m"},
		{"bell and null", "\a\x00", "\ufffd\ufffd"},
		{"lone carriage return", "good\rbad", "good\ufffdbad"},
		{"direction override", "\u202eabc\u202c", "\ufffdabc\ufffd"},
		{"isolate", "\u2066abc\u2069", "\ufffdabc\ufffd"},
		{"right-to-left mark", "א\u200f", "א\u200f"},
		{"not UTF-8", "a\xffb", "a\ufffdb"},
	}
	for _, tt := range tests {
		if got := Printable(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPrinter_BreaksLinesAtBlanks(t *testing.T) {
	p := NewPrinter(Options{Width: 40})
	p.WriteField("status", "GET /api/v1/requests/01a2 --json takes 72"+NoBreakSpace+"ms", Plain)
	want := "  status      GET /api/v1/requests/01a2\n              --json takes 72 ms\n"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOneLine_JoinsLines(t *testing.T) {
	if got, want := OneLine("a\nb\r\n\nc\x1b"), "a; b; c\ufffd"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTruncate(t *testing.T) {
	tests := []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"代码审查", 8, "代码审查"},
		{"代码审查", 7, "代码审…"},
	}
	for _, tt := range tests {
		if got := Truncate(tt.text, tt.width); got != tt.want {
			t.Errorf("Truncate(%q, %d): got %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestPrinter_Layout(t *testing.T) {
	rows := []Row{
		{Cells: []Cell{{Text: "1"}, {Text: "代码"}, {Text: "0.8", Right: true}, {Text: "last"}}},
		{
			Cells: []Cell{{Text: "10"}, {Text: "b"}, {Text: "−0.25", Right: true}, {Text: "one that does not fit beside the others"}},
			Below: []Cell{{Text: "below\nit"}},
		},
	}
	tests := []struct {
		name  string
		write func(*Printer)
		want  string
	}{
		{"field", func(p *Printer) { p.WriteField("label", "text", Plain) }, "  label       text\n"},
		{"empty field", func(p *Printer) { p.WriteField("label", "", Plain) }, "  label\n"},
		{"two lines", func(p *Printer) { p.WriteField("label", "a\nb", Plain) }, "  label       a; b\n"},
		{"list", func(p *Printer) { p.WriteList("label", []string{"a", "b"}, ", ", Plain) }, "  label       a, b\n"},
		{"empty list", func(p *Printer) { p.WriteList("label", nil, ", ", Plain) }, ""},
		{
			"wrapped", func(p *Printer) { p.WriteField("label", "word word word word word word word word word word", Plain) },
			"  label       word word word word word word word word word\n              word\n",
		},
		{"table", func(p *Printer) { p.WriteTable("label", rows) }, `  label       1   代码    0.8  last
              10  b     −0.25
                  one that does not fit beside the others
                  below; it
`},
		{"empty table", func(p *Printer) { p.WriteTable("label", nil) }, ""},
		{"records", func(p *Printer) {
			p.WriteRecords([]string{"A", "B"}, []Row{{Cells: []Cell{{Text: "1"}, {Text: "x"}}}})
		}, "A  B\n1  x\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPrinter(Options{Width: 60})
			tt.write(p)
			if diff := cmp.Diff(tt.want, p.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrinter_ColorsOnlyIfEnabled(t *testing.T) {
	for _, tt := range []struct {
		color bool
		style Style
		want  string
	}{{true, Red, "\x1b[31mx\x1b[0m"}, {true, Plain, "x"}, {false, Red, "x"}} {
		if got := NewPrinter(Options{Width: 60, Color: tt.color}).StyleText(tt.style, "x"); got != tt.want {
			t.Errorf("color %v, style %q: got %q, want %q", tt.color, tt.style, got, tt.want)
		}
	}
}

func TestDetectOptions_WithoutTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want := Options{Width: DefaultWidth}
	if got := DetectOptions(file); got != want {
		t.Errorf("file: got %+v, want %+v", got, want)
	}
	if got := DetectOptions(&bytes.Buffer{}); got != want {
		t.Errorf("buffer: got %+v, want %+v", got, want)
	}
}

func TestDetectOptions_OnTerminal(t *testing.T) {
	// The master of a pseudo-terminal is a terminal too, of unknown size.
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal on this system: %v", err)
	}
	defer tty.Close()
	if !IsTerminal(tty) {
		t.Skip("the master of a pseudo-terminal is not a terminal on this system")
	}
	tests := []struct {
		name, noColor, term string
		color               bool
	}{
		{"terminal", "", "xterm", true},
		{"NO_COLOR", "1", "xterm", false},
		{"dumb terminal", "", "dumb", false},
	}
	for _, tt := range tests {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.term)
		want := Options{Width: DefaultWidth, Color: tt.color}
		if got := DetectOptions(tty); got != want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, want)
		}
	}
}
