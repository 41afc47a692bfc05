package pycheck

import (
	"slices"
	"strings"
)

// kind is what a token is.
type kind uint8

const (
	name    kind = iota // identifiers and keywords
	number              // any numeric literal
	text                // a whole string literal, prefix and quotes included
	op                  // operators and brackets
	newline             // the end of a logical line
)

// token is one lexical unit of the source.
type token struct {
	kind   kind
	text   string
	line   int      // of its first byte, from 1
	end    int      // line of its last byte
	fields []string // of an f-string: what stands in its braces
	pair   int      // of a bracket: its partner's index in the statement, else -1
}

func (t token) is(s string) bool { return t.text == s && t.kind != text }

// remark is a comment, or a notebook magic, which is skipped like one.
type remark struct {
	line int
	text string
}

// problem is something wrong with the source's form.
type problem struct {
	line    int
	rule    string
	message string
}

// lexer cuts source into tokens. It never fails: it notes a problem, skips as
// little as it can and goes on.
type lexer struct {
	src      string
	pos      int
	line     int
	tokens   []token
	remarks  []remark
	problems []problem
	open     []token // brackets not closed yet
	wasted   int     // bytes read in vain for quotes that are missing
}

// lex returns the tokens of src, whose line ends are "\n".
func lex(src string) *lexer {
	l := &lexer{src: src, line: 1}
	l.startLine()
	for l.pos < len(l.src) {
		l.next()
	}
	l.endLogicalLine()
	for _, b := range l.open {
		l.problem(b.line, ruleBracket, "“"+b.text+"” is never closed")
	}
	return l
}

func (l *lexer) problem(line int, rule, message string) {
	l.problems = append(l.problems, problem{line, rule, message})
}

// next takes one token, comment or stretch of white space.
func (l *lexer) next() {
	c := l.src[l.pos]
	switch {
	case c == '\n':
		l.pos++
		if len(l.open) == 0 {
			l.endLogicalLine()
		}
		l.line++
		l.startLine()
	case c == ' ', c == '\t', c == '\f':
		l.pos++
	case c == '\\' && strings.HasPrefix(l.src[l.pos+1:], "\n"): // joins two lines
		l.pos += 2
		l.line++
	case c == '#':
		l.remark()
	case c == '"', c == '\'':
		l.str(l.pos)
	case isDigit(c), c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		l.number()
	case isNameByte(c):
		l.name()
	default:
		l.operator()
	}
}

// startLine runs at the first byte of each physical line.
func (l *lexer) startLine() {
	rest := strings.TrimLeft(l.src[l.pos:], " \t\f")
	if len(l.open) > 0 {
		l.recover(rest)
		return
	}
	// %pip install x, !ls: IPython magics. No Python statement starts so.
	if strings.HasPrefix(rest, "%") || strings.HasPrefix(rest, "!") {
		l.pos = len(l.src) - len(rest)
		l.remark()
	}
}

// recover ends a bracket that was never closed where a line starts with a word
// that can only start a statement, so that one typing error does not hide the
// rest of the file.
func (l *lexer) recover(rest string) {
	end := 0
	for end < len(rest) && isNameByte(rest[end]) {
		end++
	}
	if !slices.Contains(statementWords, rest[:end]) || end >= len(rest) || rest[end] != ' ' {
		return
	}
	b := l.open[0]
	l.problem(b.line, ruleBracket, "“"+b.text+"” is never closed")
	l.open = l.open[:0]
	l.endLogicalLine()
}

var statementWords = []string{"class", "def", "import", "raise", "return", "try", "while", "with"}

func (l *lexer) remark() {
	end := strings.IndexByte(l.src[l.pos:], '\n')
	if end < 0 {
		end = len(l.src) - l.pos
	}
	l.remarks = append(l.remarks, remark{l.line, l.src[l.pos : l.pos+end]})
	l.pos += end
}

func (l *lexer) endLogicalLine() {
	if n := len(l.tokens); n > 0 && l.tokens[n-1].kind != newline {
		l.add(newline, "")
	}
}

// add appends a token that lies on the current line and moves past it.
func (l *lexer) add(k kind, s string) {
	l.tokens = append(l.tokens, token{kind: k, text: s, line: l.line, end: l.line, pair: -1})
	l.pos += len(s)
}

func (l *lexer) name() {
	end := l.pos
	for end < len(l.src) && isNameByte(l.src[end]) {
		end++
	}
	if end < len(l.src) && (l.src[end] == '"' || l.src[end] == '\'') && isStringPrefix(l.src[l.pos:end]) {
		l.str(end)
		return
	}
	l.add(name, l.src[l.pos:end])
}

func (l *lexer) number() {
	end := l.pos
	hex := strings.HasPrefix(l.src[l.pos:], "0x") || strings.HasPrefix(l.src[l.pos:], "0X")
	for dots := 0; end < len(l.src); end++ {
		c := l.src[end]
		exponent := !hex && (c == '+' || c == '-') && end > l.pos && (l.src[end-1] == 'e' || l.src[end-1] == 'E')
		if c == '.' {
			dots++
		}
		if dots > 1 || c != '.' && !exponent && (!isNameByte(c) || c >= 0x80) {
			break
		}
	}
	l.add(number, l.src[l.pos:end])
}

// operators of more than one byte, longest first.
var operators = []string{
	"**=", "//=", ">>=", "<<=", "...",
	"==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", "**", "//", "<<", ">>",
}

func (l *lexer) operator() {
	for _, o := range operators {
		if strings.HasPrefix(l.src[l.pos:], o) {
			l.add(op, o)
			return
		}
	}
	s := l.src[l.pos : l.pos+1]
	switch s {
	case "(", "[", "{":
		l.open = append(l.open, token{text: s, line: l.line})
	case ")", "]", "}":
		l.close(s)
	}
	l.add(op, s)
}

var partner = map[string]string{")": "(", "]": "[", "}": "{"}

func (l *lexer) close(s string) {
	n := len(l.open)
	switch {
	case n == 0:
		l.problem(l.line, ruleBracket, "“"+s+"” closes nothing")
	case l.open[n-1].text != partner[s]:
		l.problem(l.line, ruleBracket, "“"+s+"” closes “"+l.open[n-1].text+"”")
		l.open = l.open[:n-1]
	default:
		l.open = l.open[:n-1]
	}
}

// str takes a string literal whose quote is at quote; its prefix, if any,
// starts at l.pos.
func (l *lexer) str(quote int) {
	s := scanString(l.src, quote, l.src[l.pos:quote], min(maxSpill, max(0, maxWaste-l.wasted)))
	l.wasted += s.wasted
	t := token{kind: text, line: l.line, fields: s.fields, pair: -1, text: l.src[l.pos:s.end]}
	if !s.closed {
		l.problem(l.line, ruleString, "the string is never closed")
	}
	l.line += strings.Count(t.text, "\n")
	t.end = l.line
	l.tokens = append(l.tokens, t)
	l.pos = s.end
}

// isStringPrefix reports whether s may stand before a quote.
func isStringPrefix(s string) bool {
	if len(s) > 2 {
		return false
	}
	for i := range len(s) {
		if !strings.ContainsRune("rRbBuUfFtT", rune(s[i])) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isNameByte takes every byte of a multi-byte rune: identifiers may be in any
// script.
func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || isDigit(c) || c >= 0x80
}
