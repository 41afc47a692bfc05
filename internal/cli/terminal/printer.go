// Package terminal lays out text for people: labelled fields, paragraphs and tables, with
// colors on a terminal and without in a pipe or a file. Texts from outside become
// printable, so that they cannot control the terminal. The package knows neither flags nor
// the meaning of a text.
package terminal

import (
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
	"golang.org/x/term"
)

// Layout of the output: an indent, a column of labels, then the text.
const (
	Indent       = "  "
	labelWidth   = 12
	ColumnGap    = "  " // between the columns of a table
	minTextWidth = 20   // columns of text, even if the terminal is too narrow
	minCellWidth = 40   // columns beside the other cells, below which a long last cell moves to the next line
)

// Widths in columns. Longer lines than MaxWidth are hard to read.
const (
	DefaultWidth = 100 // if the output is not a terminal
	MinWidth     = 50  // if the terminal is narrower
	MaxWidth     = 120 // if the terminal is wider
	ListWidth    = 80  // tables of lists fit it
	// unlimitedWidth is longer than every line.
	unlimitedWidth = 1 << 20
)

// Style is an ANSI color, or one of the attributes plain, bold and dim.
type Style string

// The styles of texts.
const (
	Plain  Style = ""
	Bold   Style = "bold"
	Dim    Style = "dim"
	Red    Style = "1"
	Green  Style = "2"
	Yellow Style = "3"
	Cyan   Style = "6"
)

// Options control the layout of the output.
type Options struct {
	Width int  // of the output, in columns
	Color bool // print ANSI colors
}

// DetectOptions returns the options for out: colors and the real width only for a
// terminal, and no colors if NO_COLOR is set (no-color.org).
func DetectOptions(out io.Writer) Options {
	opts := Options{Width: DefaultWidth}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return opts
	}
	opts.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		opts.Width = min(max(columns, MinWidth), MaxWidth)
	}
	return opts
}

// DetectLineOptions is DetectOptions for lists that other programs read line by line: without
// a terminal, lines are not wrapped.
func DetectLineOptions(out io.Writer) Options {
	opts := DetectOptions(out)
	if !IsTerminal(out) {
		opts.Width = unlimitedWidth
	}
	return opts
}

// IsTerminal reports whether out is a terminal.
func IsTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Printer lays out labelled text and tables. It is used by one goroutine.
type Printer struct {
	strings.Builder
	Width    int // of the output, in columns
	Margin   int // column of the text; 0 without a column of labels
	renderer *lipgloss.Renderer
}

// NewPrinter returns a Printer with a column of labels.
func NewPrinter(opts Options) *Printer {
	renderer := lipgloss.NewRenderer(io.Discard)
	renderer.SetColorProfile(termenv.Ascii)
	if opts.Color {
		renderer.SetColorProfile(termenv.ANSI)
	}
	return &Printer{Width: opts.Width, Margin: len(Indent) + labelWidth, renderer: renderer}
}

// Cell is a cell of one style.
type Cell struct {
	Text  string // lines are joined by "; "
	Style Style
	Right bool // align right
}

// Row is a row of a table. The lines below it begin at its second column.
type Row struct {
	Cells []Cell
	Below []Cell
}

func (p *Printer) newStyle(s Style) lipgloss.Style {
	style := p.renderer.NewStyle()
	switch s {
	case Plain:
		return style
	case Bold:
		return style.Bold(true)
	case Dim:
		return style.Faint(true)
	}
	return style.Foreground(lipgloss.Color(s))
}

// StyleText returns the text in the style, without wrapping.
func (p *Printer) StyleText(s Style, text string) string { return p.newStyle(s).Render(text) }

// WrapText returns the text as one paragraph that begins at the column. It breaks lines
// at blanks only, so that ids and flags remain whole; joinWords restores them.
func (p *Printer) WrapText(s Style, text string, column int) string {
	text = strings.ReplaceAll(strings.TrimSpace(OneLine(text)), "-", noBreakHyphen)
	width := min(max(p.Width-column, minTextWidth), lipgloss.Width(text)) // do not pad
	return p.newStyle(s).Width(width).Render(text)
}

// Characters at which no line is broken. The output contains their usual forms.
const (
	NoBreakSpace  = "\u00a0"
	noBreakHyphen = "\u2011"
)

// joinWords replaces the characters at which no line is broken.
func joinWords(text string) string {
	return strings.NewReplacer(NoBreakSpace, " ", noBreakHyphen, "-").Replace(text)
}

// WriteBlock writes lines that begin at the column, with the label before the first.
func (p *Printer) WriteBlock(label string, column int, block string) {
	if label != "" {
		label = Indent + p.newStyle(Dim).Render(label)
	}
	for line := range strings.SplitSeq(block, "\n") {
		line = label + strings.Repeat(" ", max(column-lipgloss.Width(label), 0)) + line
		p.WriteString(strings.TrimRight(joinWords(line), " ") + "\n")
		label = ""
	}
}

// WriteParagraph writes wrapped text without a label.
func (p *Printer) WriteParagraph(s Style, text string) {
	p.WriteBlock("", 0, p.WrapText(s, text, 0))
}

// WriteField writes wrapped text beside the label.
func (p *Printer) WriteField(label, text string, s Style) {
	p.WriteBlock(label, p.Margin, p.WrapText(s, text, p.Margin))
}

// WriteFields writes one field per text, with the label before the first.
func (p *Printer) WriteFields(label string, texts []string, s Style) {
	for _, text := range texts {
		p.WriteField(label, text, s)
		label = ""
	}
}

// WriteList writes the items as one field, or nothing if there are none. Lines break
// between items if they fit.
func (p *Printer) WriteList(label string, items []string, separator string, s Style) {
	if len(items) == 0 {
		return
	}
	joined := strings.Builder{}
	for i, item := range items {
		if i > 0 {
			joined.WriteString(separator)
		}
		joined.WriteString(strings.ReplaceAll(item, " ", NoBreakSpace))
	}
	p.WriteBlock(label, p.Margin, p.WrapText(s, joined.String(), p.Margin))
}

// WriteTable writes the rows beside the label with aligned columns. The last cell of a
// row is wrapped.
func (p *Printer) WriteTable(label string, rows []Row) {
	widths := ColumnWidths(rows)
	for _, r := range rows {
		last := r.Cells[len(r.Cells)-1]
		column := p.Margin
		var blocks []string
		for k, c := range r.Cells[:len(r.Cells)-1] {
			align := lipgloss.Left
			if c.Right {
				align = lipgloss.Right
			}
			blocks = append(blocks, p.newStyle(c.Style).Width(widths[k]).Align(align).Render(OneLine(c.Text)), ColumnGap)
			column += widths[k] + len(ColumnGap)
		}
		if room := p.Width - column; lipgloss.Width(OneLine(last.Text)) > room && room < minCellWidth {
			r.Below = append([]Cell{last}, r.Below...)
		} else {
			blocks = append(blocks, p.WrapText(last.Style, last.Text, column))
		}
		p.WriteBlock(label, p.Margin, lipgloss.JoinHorizontal(lipgloss.Top, blocks...))
		label = ""
		second := p.Margin + widths[0] + len(ColumnGap)
		for _, c := range r.Below {
			p.WriteBlock("", second, p.WrapText(c.Style, c.Text, second))
		}
	}
}

// ColumnWidths returns the width of each column of a table.
func ColumnWidths(rows []Row) []int {
	var widths []int
	for _, r := range rows {
		for k, c := range r.Cells {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], lipgloss.Width(OneLine(c.Text)))
		}
	}
	return widths
}

// WriteRecords writes rows under a header without labels.
func (p *Printer) WriteRecords(header []string, rows []Row) {
	head := Row{}
	for _, name := range header {
		head.Cells = append(head.Cells, Cell{Text: name, Style: Dim})
	}
	p.Margin = 0
	p.WriteTable("", append([]Row{head}, rows...))
}
