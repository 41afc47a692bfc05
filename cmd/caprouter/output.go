package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/muesli/termenv"
	"golang.org/x/term"
)

// Layout of the output: an indent, a column of labels, then the text.
const (
	indent       = "  "
	labelWidth   = 12
	columnGap    = "  "
	minTextWidth = 20 // columns of text, even if the terminal is too narrow
	minCellWidth = 40 // columns beside the other cells, below which a long last cell moves to the next line
)

// Widths in columns. Longer lines than maxWidth are hard to read.
const (
	defaultWidth = 100 // if the output is not a terminal
	minWidth     = 50
	// listWidth is the width that tables of lists fit.
	listWidth = 80
	// unlimitedWidth is longer than every line.
	unlimitedWidth = 1 << 20
	maxWidth       = 120
)

// textStyle is an ANSI color, or one of the attributes plain, bold and dim.
type textStyle string

const (
	plain  textStyle = ""
	bold   textStyle = "bold"
	dim    textStyle = "dim"
	red    textStyle = "1"
	green  textStyle = "2"
	yellow textStyle = "3"
	cyan   textStyle = "6"
)

// outputOptions control the layout of the output.
type outputOptions struct {
	width int
	color bool
}

// detectOutput returns the options for out: colors and the real width only for a
// terminal, and no colors if NO_COLOR is set (no-color.org).
func detectOutput(out io.Writer) outputOptions {
	opts := outputOptions{width: defaultWidth}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return opts
	}
	opts.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		opts.width = min(max(columns, minWidth), maxWidth)
	}
	return opts
}

// detectLines is detectOutput for lists that other programs read line by line: without
// a terminal, lines are not wrapped.
func detectLines(out io.Writer) outputOptions {
	opts := detectOutput(out)
	if !isTerminal(out) {
		opts.width = unlimitedWidth
	}
	return opts
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printer lays out labelled text and tables. It is used by one goroutine.
type printer struct {
	strings.Builder
	width    int
	margin   int // column of the text; 0 without a column of labels
	renderer *lipgloss.Renderer
}

func newPrinter(opts outputOptions) *printer {
	renderer := lipgloss.NewRenderer(io.Discard)
	renderer.SetColorProfile(termenv.Ascii)
	if opts.color {
		renderer.SetColorProfile(termenv.ANSI)
	}
	return &printer{width: opts.width, margin: len(indent) + labelWidth, renderer: renderer}
}

// tableCell is a cell of one style.
type tableCell struct {
	text  string
	style textStyle
	right bool // align right
}

// tableRow is a row of a table. The lines below it begin at its second column.
type tableRow struct {
	cells []tableCell
	below []tableCell
}

func (p *printer) newStyle(s textStyle) lipgloss.Style {
	style := p.renderer.NewStyle()
	switch s {
	case plain:
		return style
	case bold:
		return style.Bold(true)
	case dim:
		return style.Faint(true)
	}
	return style.Foreground(lipgloss.Color(s))
}

// styleText returns the text in the style, without wrapping.
func (p *printer) styleText(s textStyle, text string) string { return p.newStyle(s).Render(text) }

// wrapText returns the text as one paragraph that begins at the column. It breaks lines
// at blanks only, so that ids and flags remain whole; joinWords restores them.
func (p *printer) wrapText(s textStyle, text string, column int) string {
	text = strings.ReplaceAll(strings.TrimSpace(oneLine(text)), "-", noBreakHyphen)
	width := min(max(p.width-column, minTextWidth), lipgloss.Width(text)) // do not pad
	return p.newStyle(s).Width(width).Render(text)
}

// Characters at which no line is broken. The output contains their usual forms.
const (
	noBreakSpace  = "\u00a0"
	noBreakHyphen = "\u2011"
)

// joinWords replaces the characters at which no line is broken.
func joinWords(text string) string {
	return strings.NewReplacer(noBreakSpace, " ", noBreakHyphen, "-").Replace(text)
}

// writeBlock writes lines that begin at the column, with the label before the first.
func (p *printer) writeBlock(label string, column int, block string) {
	if label != "" {
		label = indent + p.newStyle(dim).Render(label)
	}
	for line := range strings.SplitSeq(block, "\n") {
		line = label + strings.Repeat(" ", max(column-lipgloss.Width(label), 0)) + line
		p.WriteString(strings.TrimRight(joinWords(line), " ") + "\n")
		label = ""
	}
}

// writeParagraph writes wrapped text without a label.
func (p *printer) writeParagraph(s textStyle, text string) {
	p.writeBlock("", 0, p.wrapText(s, text, 0))
}

// writeField writes wrapped text beside the label.
func (p *printer) writeField(label, text string, s textStyle) {
	p.writeBlock(label, p.margin, p.wrapText(s, text, p.margin))
}

// writeFields writes one field per text, with the label before the first.
func (p *printer) writeFields(label string, texts []string, s textStyle) {
	for _, text := range texts {
		p.writeField(label, text, s)
		label = ""
	}
}

// writeList writes the items as one field, or nothing if there are none. Lines break
// between items if they fit.
func (p *printer) writeList(label string, items []string, separator string, s textStyle) {
	if len(items) == 0 {
		return
	}
	joined := strings.Builder{}
	for i, item := range items {
		if i > 0 {
			joined.WriteString(separator)
		}
		joined.WriteString(strings.ReplaceAll(item, " ", noBreakSpace))
	}
	p.writeBlock(label, p.margin, p.wrapText(s, joined.String(), p.margin))
}

// writeTable writes the rows beside the label with aligned columns. The last cell of a
// row is wrapped.
func (p *printer) writeTable(label string, rows []tableRow) {
	widths := columnWidths(rows)
	for _, r := range rows {
		last := r.cells[len(r.cells)-1]
		column := p.margin
		var blocks []string
		for k, c := range r.cells[:len(r.cells)-1] {
			align := lipgloss.Left
			if c.right {
				align = lipgloss.Right
			}
			blocks = append(blocks, p.newStyle(c.style).Width(widths[k]).Align(align).Render(oneLine(c.text)), columnGap)
			column += widths[k] + len(columnGap)
		}
		if room := p.width - column; lipgloss.Width(oneLine(last.text)) > room && room < minCellWidth {
			r.below = append([]tableCell{last}, r.below...)
		} else {
			blocks = append(blocks, p.wrapText(last.style, last.text, column))
		}
		p.writeBlock(label, p.margin, lipgloss.JoinHorizontal(lipgloss.Top, blocks...))
		label = ""
		second := p.margin + widths[0] + len(columnGap)
		for _, c := range r.below {
			p.writeBlock("", second, p.wrapText(c.style, c.text, second))
		}
	}
}

// columnWidths returns the width of each column of a table.
func columnWidths(rows []tableRow) []int {
	var widths []int
	for _, r := range rows {
		for k, c := range r.cells {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], lipgloss.Width(oneLine(c.text)))
		}
	}
	return widths
}

// writeRecords writes rows under a header without labels.
func (p *printer) writeRecords(header []string, rows []tableRow) {
	head := tableRow{}
	for _, name := range header {
		head.cells = append(head.cells, tableCell{text: name, style: dim})
	}
	p.margin = 0
	p.writeTable("", append([]tableRow{head}, rows...))
}

// textWidth returns the width of the longest line of a text, in columns.
func textWidth(text string) int { return lipgloss.Width(text) }

// wrapWords breaks the lines of a text that are longer than the width in columns.
func wrapWords(text string, width int) string { return ansi.Wrap(text, width, "") }

// truncate shortens text to the width in columns.
func truncate(s string, width int) string { return ansi.Truncate(s, width, "…") }

// printable replaces control characters, which could move the cursor or hide text, and
// characters that change the direction of text, by U+FFFD. Line breaks stay, tabs become
// spaces.
func printable(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) && r > '\u200f') {
			return utf8.RuneError
		}
		return r
	}, s)
}

// oneLine joins the lines of a text by "; ", and makes it printable.
func oneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "; ")
}

// eraseLine moves the cursor to the start of the line and erases it.
const eraseLine = "\r\x1b[K"

// progressLine shows progress on a terminal, and nothing otherwise.
type progressLine struct {
	out      io.Writer
	terminal bool
}

func newProgressLine(out io.Writer) *progressLine {
	return &progressLine{out: out, terminal: isTerminal(out)}
}

func (s *progressLine) print(stage string, done, total int) {
	s.printLine(fmt.Sprintf("%s %d/%d", stage, done, total))
}

func (s *progressLine) printLine(text string) {
	if s.terminal {
		fmt.Fprint(s.out, eraseLine+indent+text)
	}
}

func (s *progressLine) clear() {
	if s.terminal {
		fmt.Fprint(s.out, eraseLine)
	}
}
