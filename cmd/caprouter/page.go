package main

import (
	"strings"
)

// style is an SGR parameter of ANSI terminals.
type style string

const (
	none   style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// The page's left edge: an indent, a column of labels, then the text.
const (
	indent       = "  "
	labelWidth   = 12
	textColumn   = len(indent) + labelWidth
	answerIndent = indent + indent
	columnGap    = "  "
	narrow       = 32 // columns that are too few for a cell that does not fit
	leastRoom    = 20 // columns text gets even where the page is too narrow
)

// page lays out labelled lines and tables for a terminal of a known width.
type page struct {
	strings.Builder
	width  int
	colour bool
}

func newPage(opts printOpts) *page { return &page{width: opts.width, colour: opts.colour} }

// cell is a piece of text of one style.
type cell struct {
	text  string
	style style
	right bool // flush right in its column
}

// row is one line of a table; what is below it begins at its second column.
type row struct {
	cells []cell
	below []cell
}

// room is how many columns text beside a label has.
func (p *page) room() int { return max(p.width-textColumn, leastRoom) }

func (p *page) paint(s style, text string) string {
	if !p.colour || s == none || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// raw writes one line.
func (p *page) raw(margin, text string) {
	if text != "" {
		p.WriteString(margin + text)
	}
	p.WriteByte('\n')
}

// line writes the label and a cell that fits beside it.
func (p *page) line(label string, c cell) {
	if c.text == "" {
		p.raw(indent, p.paint(dim, label))
		return
	}
	p.label(label)
	p.WriteString(p.paint(c.style, c.text))
	p.WriteByte('\n')
}

func (p *page) label(label string) {
	p.WriteString(indent + p.paint(dim, label))
	p.spaces(labelWidth - len(label))
}

func (p *page) spaces(n int) { p.WriteString(strings.Repeat(" ", max(n, 0))) }

// field writes text beside the label, wrapped.
func (p *page) field(label, text string, s style) {
	for i, line := range wrap(strings.TrimSpace(oneLine(text)), p.room()) {
		if i > 0 {
			label = ""
		}
		p.line(label, cell{text: line, style: s})
	}
}

// list writes the items with the separator after each but the last, and breaks
// lines between items only. It writes nothing when there are none.
func (p *page) list(label string, items []string, separator string, s style) {
	var line string
	for i, item := range items {
		if item = oneLine(item); i < len(items)-1 {
			item += separator
		}
		switch {
		case line == "":
			line = item
		case textWidth(line)+1+textWidth(item) > p.room():
			p.field(label, line, s)
			label, line = "", item
		default:
			line += " " + item
		}
	}
	if line != "" {
		p.field(label, line, s)
	}
}

// table writes the rows beside the label, their columns aligned. The last cell
// of a row goes on in further lines, or stands below the row where there is
// little room beside it.
func (p *page) table(label string, rows []row) {
	clean(rows)
	widths := columnWidths(rows)
	for _, r := range rows {
		p.label(label)
		label = ""
		head, column := p.head(r.cells, widths)
		last, below := r.cells[len(r.cells)-1], r.below
		if room := p.width - column; textWidth(last.text) > room && room < narrow {
			p.raw("", strings.TrimRight(head, " "))
			below = append([]cell{last}, below...)
		} else {
			p.WriteString(head)
			p.last(last, column)
		}
		at := textColumn + widths[0] + len(columnGap)
		for _, c := range below {
			p.spaces(at)
			p.last(c, at)
		}
	}
}

// head is all of a row but its last cell, and the column that one begins at.
func (p *page) head(cells []cell, widths []int) (text string, column int) {
	var b strings.Builder
	column = textColumn
	for k, c := range cells[:len(cells)-1] {
		fill := strings.Repeat(" ", widths[k]-textWidth(c.text))
		if c.right {
			b.WriteString(fill + p.paint(c.style, c.text))
		} else {
			b.WriteString(p.paint(c.style, c.text) + fill)
		}
		b.WriteString(columnGap)
		column += widths[k] + len(columnGap)
	}
	return b.String(), column
}

// clean makes sure that every cell is one printable line.
func clean(rows []row) {
	for _, r := range rows {
		for k := range r.cells {
			r.cells[k].text = oneLine(r.cells[k].text)
		}
		for k := range r.below {
			r.below[k].text = oneLine(r.below[k].text)
		}
	}
}

// columnWidths are the widths of the columns.
func columnWidths(rows []row) []int {
	var widths []int
	for _, r := range rows {
		for k, c := range r.cells {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], textWidth(c.text))
		}
	}
	return widths
}

// last writes a cell that begins at the column and may go on in further lines.
func (p *page) last(c cell, column int) {
	for i, line := range wrap(c.text, max(p.width-column, leastRoom)) {
		if i > 0 {
			p.spaces(column)
		}
		p.WriteString(p.paint(c.style, line))
		p.WriteByte('\n')
	}
}
