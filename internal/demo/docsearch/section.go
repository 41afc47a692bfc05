package docsearch

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
)

// Section is the text between one heading of a file and the next.
type Section struct {
	File    string   // its base name, e.g. "routing.md"
	Heading string   // of the section itself, e.g. "Score"
	Path    []string // the headings above it, outermost first
	Blocks  []string // paragraphs, list items, table rows and code blocks
}

// Load cuts every .md file at the root of fsys into sections, in the order of
// the file names.
func Load(fsys fs.FS) ([]Section, error) {
	names, err := fs.Glob(fsys, "*.md")
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	var out []Section
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read document: %w", err)
		}
		out = append(out, Split(path.Base(name), string(data))...)
	}
	return out, nil
}

// Split cuts one Markdown text into sections. A heading inside a code fence is
// code; a section without text of its own is left out.
func Split(file, text string) []Section {
	s := splitter{file: file}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for line := range strings.SplitSeq(text, "\n") {
		s.line(line)
	}
	s.endSection()
	return s.out
}

// splitter reads Markdown line by line.
type splitter struct {
	file  string
	out   []Section
	stack []string // headings, by level from 1
	now   []string // blocks of the section
	block []string // lines of the block
	fence string   // what closes the code block we are in, "" outside
}

func (s *splitter) line(line string) {
	bare := strings.TrimSpace(line)
	switch {
	case s.fence != "":
		if strings.HasPrefix(bare, s.fence) {
			s.fence = ""
			s.endBlock("\n")
			return
		}
		s.block = append(s.block, line)
	case strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~"):
		s.endBlock(" ")
		s.fence = bare[:3]
	case headingLevel(line) > 0:
		s.endSection()
		n := headingLevel(line)
		for len(s.stack) < n {
			s.stack = append(s.stack, "")
		}
		s.stack = append(s.stack[:n-1], plain(strings.Trim(line[n:], "# \t")))
	case bare == "":
		s.endBlock(" ")
	case strings.HasPrefix(bare, "|"):
		s.endBlock(" ")
		s.now = appendRow(s.now, bare)
	case isItem(bare):
		s.endBlock(" ")
		s.block = append(s.block, bare)
	default:
		s.block = append(s.block, bare)
	}
}

// endBlock keeps what has been read as one block, its lines joined by glue.
func (s *splitter) endBlock(glue string) {
	if b := strings.TrimSpace(strings.Join(s.block, glue)); b != "" {
		s.now = append(s.now, b)
	}
	s.block = nil
}

func (s *splitter) endSection() {
	s.endBlock(" ")
	if len(s.now) == 0 {
		return
	}
	sec := Section{File: s.file, Heading: s.file, Blocks: s.now}
	if n := len(s.stack); n > 0 {
		sec.Heading = s.stack[n-1]
		for _, h := range s.stack[:n-1] {
			if h != "" {
				sec.Path = append(sec.Path, h)
			}
		}
	}
	s.out = append(s.out, sec)
	s.now = nil
}

// headingLevel is 1 to 6 for "# " to "###### ", 0 for other lines.
func headingLevel(line string) int {
	n := len(line) - len(strings.TrimLeft(line, "#"))
	if n < 1 || n > 6 || len(line) == n || line[n] != ' ' {
		return 0
	}
	return n
}

func isItem(line string) bool {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "0123456789"), ". "); ok && rest != "" && unicode.IsDigit(rune(line[0])) {
		return true
	}
	return strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "- ")
}

// appendRow keeps a table row as its cells; the line of dashes is dropped.
func appendRow(blocks []string, row string) []string {
	var cells []string
	for cell := range strings.SplitSeq(strings.Trim(row, "|"), "|") {
		if cell = strings.TrimSpace(cell); strings.Trim(cell, "-: ") != "" {
			cells = append(cells, cell)
		}
	}
	if len(cells) == 0 {
		return blocks
	}
	return append(blocks, strings.Join(cells, " · "))
}

// plain drops the marks of code and emphasis.
func plain(s string) string { return strings.NewReplacer("`", "", "**", "").Replace(s) }

// anchor is the fragment under which a heading is linked to.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ', r == '-':
			b.WriteByte('-')
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}
