package pycheck

import "strings"

// literal is what scanString found.
type literal struct {
	end    int      // offset behind the literal
	closed bool     // its closing quote is there
	fields []string // of an f-string: the text of each replacement field
	wasted int      // bytes read beyond the end in vain
}

// maxSpill bounds how far a replacement field of a one-line string may reach
// beyond its line (allowed since Python 3.12). What is read in vain, because
// the quote is missing, counts against maxWaste for the whole source.
const (
	maxSpill = 512
	maxWaste = 64 << 10
)

// frame is one level of nesting in an f-string.
type frame struct {
	kind  frameKind
	quote string // of a string: what closes it
	f     bool   // of a string: it has replacement fields
	depth int    // of an expression: open brackets
}

type frameKind uint8

const (
	inString frameKind = iota
	inExpr             // between { and }
	inSpec             // between : and } of a field
)

// stringScan walks over one literal. Frames nest as f-strings do:
//
//	f"total {row["cost"]:{width}.2f}"
//	 string └ expr └ string  └ spec └ expr
type stringScan struct {
	src    string
	pos    int
	limit  int
	spill  int // how far a field may reach beyond the line
	stack  []frame
	start  int // of the outermost field
	fields []string
}

// scanString reads the literal whose opening quote is at src[at].
func scanString(src string, at int, prefix string, spill int) literal {
	s := &stringScan{src: src, pos: at, limit: len(src), spill: spill}
	s.openString(prefix)
	triple := len(s.stack[0].quote) == 3
	for len(s.stack) > 0 && s.pos < s.limit {
		if s.src[s.pos] == '\n' && !triple && !s.crossLine() {
			break
		}
		s.step()
	}
	if len(s.stack) == 0 {
		return literal{end: s.pos, closed: true, fields: s.fields}
	}
	if triple {
		return literal{end: len(src), fields: s.fields}
	}
	end := strings.IndexByte(src[at:], '\n')
	if end < 0 {
		end = len(src) - at
	}
	return literal{end: at + end, wasted: max(0, s.pos-at-end)}
}

// crossLine reports whether a one-line string may go on behind this line end.
func (s *stringScan) crossLine() bool {
	top := s.top()
	if s.spill == 0 || top.kind == inString && len(top.quote) == 1 || top.kind == inSpec {
		return false
	}
	s.limit = min(s.limit, s.pos+s.spill)
	return true
}

func (s *stringScan) top() *frame { return &s.stack[len(s.stack)-1] }
func (s *stringScan) pop()        { s.stack = s.stack[:len(s.stack)-1] }

// openString pushes the string whose quote is at s.pos and moves past it.
func (s *stringScan) openString(prefix string) {
	quote := s.src[s.pos : s.pos+1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(s.src[s.pos:], three) {
		quote = three
	}
	s.stack = append(s.stack, frame{kind: inString, quote: quote, f: strings.ContainsAny(prefix, "fFtT")})
	s.pos += len(quote)
}

func (s *stringScan) step() {
	switch s.top().kind {
	case inString:
		s.stepString()
	case inExpr:
		s.stepExpr()
	case inSpec:
		s.stepSpec()
	}
}

func (s *stringScan) stepString() {
	top := s.top()
	rest := s.src[s.pos:]
	switch {
	case rest[0] == '\\':
		s.escape(rest, top.f)
	case strings.HasPrefix(rest, top.quote):
		s.pos += len(top.quote)
		s.pop()
	case top.f && (strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}")):
		s.pos += 2
	case top.f && rest[0] == '{':
		s.openField()
	default:
		s.pos++
	}
}

// escape moves past a backslash and what it keeps from its meaning: in a raw
// string too the next quote does not close; a brace is never escaped.
func (s *stringScan) escape(rest string, formatted bool) {
	s.pos++
	switch {
	case len(rest) == 1, formatted && (rest[1] == '{' || rest[1] == '}'):
	case formatted && strings.HasPrefix(rest, `\N{`): // a character by its name
		s.pos += 1 + max(0, strings.IndexByte(rest[1:min(len(rest), 128)], '}'))
	default:
		s.pos++
	}
}

func (s *stringScan) openField() {
	s.pos++
	if len(s.stack) == 1 {
		s.start = s.pos
	}
	s.stack = append(s.stack, frame{kind: inExpr})
}

// closeField ends the innermost field; the outermost one is kept.
func (s *stringScan) closeField() {
	if s.top().kind == inSpec {
		s.pop()
	}
	s.pop()
	if len(s.stack) == 1 {
		s.fields = append(s.fields, s.src[s.start:s.pos])
	}
	s.pos++
}

func (s *stringScan) stepExpr() {
	top := s.top()
	switch c := s.src[s.pos]; c {
	case '"', '\'':
		s.openString(s.prefixBefore())
		return
	case '(', '[', '{':
		top.depth++
	case ')', ']', '}':
		if c == '}' && top.depth == 0 {
			s.closeField()
			return
		}
		top.depth = max(0, top.depth-1)
	case ':':
		if top.depth == 0 {
			s.stack = append(s.stack, frame{kind: inSpec})
		}
	case '#':
		if end := strings.IndexByte(s.src[s.pos:s.limit], '\n'); end > 0 {
			s.pos += end
			return
		}
	}
	s.pos++
}

// prefixBefore is the string prefix that ends at s.pos, "" when there is none.
func (s *stringScan) prefixBefore() string {
	from := s.pos
	for from > s.start && isNameByte(s.src[from-1]) {
		from--
	}
	if p := s.src[from:s.pos]; isStringPrefix(p) {
		return p
	}
	return ""
}

func (s *stringScan) stepSpec() {
	switch s.src[s.pos] {
	case '{':
		s.openField()
	case '}':
		s.closeField()
	default:
		s.pos++
	}
}
