package pycheck

import (
	"slices"
	"strings"
)

// stmt is one statement: its tokens without the final colon, and, where it
// opens a block, the statements of the block.
type stmt struct {
	toks   []token // at least one
	block  bool    // it ended in a colon
	indent string
	width  int // of the indent, tabs to multiples of eight
	parent *stmt
	body   []*stmt
}

func (s *stmt) line() int { return s.toks[0].line }

// keyword is the word that says what the statement is: "def" also for "async
// def". It is "" for an expression or assignment that starts otherwise.
func (s *stmt) keyword() string {
	i := 0
	if s.toks[0].is("async") && len(s.toks) > 1 {
		i = 1
	}
	if s.toks[i].kind != name {
		return ""
	}
	return s.toks[i].text
}

// defined is the name a def or class statement binds, and its token's index;
// "" for others.
func (s *stmt) defined() (string, int) {
	i := 1
	if s.toks[0].is("async") {
		i = 2
	}
	if k := s.keyword(); k != "def" && k != "class" || i >= len(s.toks) || s.toks[i].kind != name {
		return "", 0
	}
	return s.toks[i].text, i
}

// inside returns the nearest enclosing statement that starts with one of the
// keywords, nil when there is none.
func (s *stmt) inside(keywords ...string) *stmt {
	for p := s.parent; p != nil; p = p.parent {
		if slices.Contains(keywords, p.keyword()) {
			return p
		}
	}
	return nil
}

// at returns token i, a zero token outside the statement.
func (s *stmt) at(i int) token {
	if i < 0 || i >= len(s.toks) {
		return token{pair: -1, kind: newline}
	}
	return s.toks[i]
}

// call reports whether token i is a name that is called.
func (s *stmt) call(i int) bool {
	return s.toks[i].kind == name && s.at(i+1).is("(") && !s.at(i-1).is("def") && !s.at(i-1).is("class")
}

// source is what the rules look at.
type source struct {
	lines    []string // without line ends
	top      []*stmt  // module level
	all      []*stmt  // in source order
	remarks  []remark
	problems []problem
	base     int // indent of the first line: a snippet may be indented as a whole
	notebook bool
}

// siblings returns the block a statement stands in.
func (p *source) siblings(s *stmt) []*stmt {
	if s.parent == nil {
		return p.top
	}
	return s.parent.body
}

// parse builds the statements of src.
func parse(src string) *source {
	l := lex(src)
	p := &source{lines: strings.Split(src, "\n"), remarks: l.remarks, problems: l.problems}
	var enclosing []*stmt // the blocks that are open, by growing width
	for line := range logicalLines(l.tokens) {
		first := line[0]
		indent := leadingSpace(p.lines[first.line-1])
		width := indentWidth(indent)
		if len(p.all) == 0 {
			p.base = width
		}
		enclosing = p.dedent(enclosing, first.line, width)
		enclosing = p.addLine(line, indent, width, enclosing)
	}
	for _, s := range p.all {
		if s.block && len(s.body) == 0 {
			p.problem(s.line(), ruleIndent, "an indented block is missing behind this line")
		}
	}
	return p
}

// dedent drops the blocks a line of this width stands outside of.
func (p *source) dedent(enclosing []*stmt, line, width int) []*stmt {
	n := len(enclosing)
	for n > 0 && enclosing[n-1].width >= width {
		n--
	}
	if n > 0 {
		if b := enclosing[n-1]; len(b.body) > 0 && b.body[0].width != width {
			p.problem(line, ruleIndent, "this indent matches no line before it")
		}
	} else if width != p.base {
		p.problem(line, ruleIndent, "the line is indented without a block around it")
	}
	return enclosing[:n]
}

func (p *source) problem(line int, rule, message string) {
	p.problems = append(p.problems, problem{line, rule, message})
}

// addLine appends the statements of one logical line and returns the open
// blocks after it.
func (p *source) addLine(line []token, indent string, width int, enclosing []*stmt) []*stmt {
	var parent *stmt
	if len(enclosing) > 0 {
		parent = enclosing[len(enclosing)-1]
	}
	head, rest, block := splitHeader(line)
	if !block {
		p.addSimple(line, indent, width, parent)
		return enclosing
	}
	s := p.add(head, indent, width, parent)
	s.block = true
	if len(rest) > 0 { // if x: return
		p.addSimple(rest, indent, width, s)
		return enclosing
	}
	return append(enclosing, s)
}

// addSimple appends the statements of a; b; c.
func (p *source) addSimple(line []token, indent string, width int, parent *stmt) {
	from := 0
	for i := range len(line) + 1 {
		if i < len(line) && !line[i].is(";") {
			continue
		}
		if i > from {
			p.add(line[from:i], indent, width, parent)
		}
		from = i + 1
	}
}

func (p *source) add(toks []token, indent string, width int, parent *stmt) *stmt {
	s := &stmt{toks: toks, indent: indent, width: width, parent: parent}
	pair(toks)
	p.all = append(p.all, s)
	if parent == nil {
		p.top = append(p.top, s)
	} else {
		parent.body = append(parent.body, s)
	}
	return s
}

// pair links the brackets of one statement.
func pair(toks []token) {
	var open []int
	for i, t := range toks {
		if t.kind != op {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if n := len(open); n > 0 {
				toks[i].pair, toks[open[n-1]].pair = open[n-1], i
				open = open[:n-1]
			}
		}
	}
}

var blockWords = []string{
	"async", "class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while", "with",
}

// splitHeader cuts a line that opens a block at its colon.
func splitHeader(line []token) (head, rest []token, block bool) {
	if line[0].kind != name {
		return nil, nil, false
	}
	last := len(line) - 1
	if line[0].text == "match" || line[0].text == "case" { // names, unless a block follows
		if last > 0 && line[last].is(":") {
			return line[:last], nil, true
		}
		return nil, nil, false
	}
	if !slices.Contains(blockWords, line[0].text) {
		return nil, nil, false
	}
	depth, lambdas := 0, 0
	for i, t := range line {
		switch {
		case t.is("("), t.is("["), t.is("{"):
			depth++
		case t.is(")"), t.is("]"), t.is("}"):
			depth--
		case depth == 0 && t.is("lambda"):
			lambdas++
		case depth == 0 && t.is(":") && lambdas > 0:
			lambdas--
		case depth == 0 && t.is(":"):
			return line[:i], line[i+1:], true
		}
	}
	return nil, nil, false
}

// logicalLines yields the tokens between line ends.
func logicalLines(tokens []token) func(yield func([]token) bool) {
	return func(yield func([]token) bool) {
		from := 0
		for i, t := range tokens {
			if t.kind != newline {
				continue
			}
			if i > from && !yield(tokens[from:i]) {
				return
			}
			from = i + 1
		}
	}
}

func leadingSpace(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t\f"))]
}

func indentWidth(indent string) int {
	w := 0
	for _, c := range indent {
		if c == '\t' {
			w += 8 - w%8
		} else {
			w++
		}
	}
	return w
}
