package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// SplitClauses splits a text into clauses, each of which may be a request: at
// the ends of sentences, at semicolons, before list items, and at conjunctions
// (and, then, e, depois, y, luego, 然后, 另外, 并). It does not split inside
// numbers, file names, URLs, abbreviations, quoted code, fenced code blocks,
// JSON objects or HTML comments. The clauses are substrings of the text, in
// order, without the conjunctions; none is empty. Use [Model.Classify] to find
// out whether a clause is a request.
func (m *Model) SplitClauses(text string) []string {
	s := clauseSplitter{text: text, embedded: token.NewEmbedded(text)}
	s.skipListMarker()
	for s.pos < len(text) {
		s.scanNext()
	}
	s.endClause(len(text), len(text))
	return s.parts
}

type clauseSplitter struct {
	text  string
	start int // of the current clause
	pos   int
	parts []string

	embedded token.Embedded
}

// endClause ends the current clause at end, and starts the next one at next.
func (s *clauseSplitter) endClause(end, next int) {
	part := strings.TrimFunc(s.text[s.start:end], unicode.IsSpace)
	part = strings.TrimFunc(part, func(r rune) bool { return r == ',' || r == '，' || r == '、' || unicode.IsSpace(r) })
	if part != "" {
		s.parts = append(s.parts, part)
	}
	s.start, s.pos = next, next
}

// scanNext consumes one character, or one word if a word starts here.
func (s *clauseSplitter) scanNext() {
	c := s.text[s.pos]
	switch {
	case c == '`':
		s.skipCode()
	case c == '{' || c == '<':
		s.pos = max(s.pos+1, s.embedded.EndAt(s.pos))
	case c == '\n':
		s.scanNewline()
	case c == ';':
		s.endClause(s.pos, s.pos+1)
	case c == '.' || c == '!' || c == '?':
		s.scanSentenceEnd(c)
	case c >= utf8.RuneSelf:
		s.scanNonASCII()
	case token.IsASCIIWord(c) && s.atWordStart():
		s.scanWord()
	default:
		s.pos++
	}
}

// skipCode skips quoted code. A fenced block ends its clause.
func (s *clauseSplitter) skipCode() {
	if f, ok := token.FenceAt(s.text, s.pos); ok {
		s.endClause(f.End, f.End)
		return
	}
	ticks := token.CountBackticks(s.text, s.pos)
	inside := s.pos + ticks
	rest := s.text[inside:]
	if closing := strings.Index(rest, s.text[s.pos:inside]); closing >= 0 && !strings.Contains(rest[:closing], "\n") {
		inside += closing + ticks
	}
	s.pos = inside
}

// scanNewline ends a clause if a paragraph or a list item follows.
func (s *clauseSplitter) scanNewline() {
	line := strings.TrimLeft(s.text[s.pos+1:], " \t\r")
	if line == "" || line[0] == '\n' || listMarkerLength(line) > 0 {
		s.endClause(s.pos, s.pos+1)
		s.skipListMarker()
		return
	}
	s.pos++
}

// skipListMarker excludes a list marker from the clause.
func (s *clauseSplitter) skipListMarker() {
	rest := s.text[s.start:]
	line := strings.TrimLeft(rest, " \t\r")
	if n := listMarkerLength(line); n > 0 {
		s.start += len(rest) - len(line) + n
		s.pos = s.start
	}
}

// listMarkerLength returns the length of the list marker at the start of line:
// "- ", "* ", "• ", "1. ", "2) ", "a) ".
func listMarkerLength(line string) int {
	n := 0
	for n < len(line) && n < 3 && '0' <= line[n] && line[n] <= '9' {
		n++
	}
	switch {
	case strings.HasPrefix(line, "•"), strings.HasPrefix(line, "–"):
		n = len("•")
	case line == "":
		return 0
	case n > 0 && n < len(line) && (line[n] == '.' || line[n] == ')'):
		n++
	case n == 0 && (line[0] == '-' || line[0] == '*' || line[0] == '+'):
		n = 1
	case n == 0 && len(line) > 1 && token.IsASCIIWord(line[0]) && line[1] == ')':
		n = 2
	default:
		return 0
	}
	if n == len(line) || line[n] != ' ' && line[n] != '\t' {
		return 0
	}
	return n + 1
}

// scanSentenceEnd ends a clause at a full stop, exclamation mark or question
// mark, if white space follows (after an optional closing quote or bracket).
// Only the full stop is removed.
func (s *clauseSplitter) scanSentenceEnd(c byte) {
	after := s.pos + 1
	for after < len(s.text) && strings.IndexByte(`"')]*_`, s.text[after]) >= 0 {
		after++
	}
	ends := after == len(s.text) || s.text[after] == ' ' || s.text[after] == '\n' || s.text[after] == '\t' || s.text[after] == '\r'
	switch {
	case !ends, c == '.' && after < len(s.text) && endsInAbbreviation(s.text[s.start:s.pos]):
		s.pos++
	case c == '.':
		s.endClause(s.pos, after)
	default:
		s.endClause(after, after)
	}
}

// endsInAbbreviation reports whether the text before a full stop ends in an
// abbreviation or an initial.
func endsInAbbreviation(text string) bool {
	word := text[strings.LastIndexAny(text, " \t\n(\"'")+1:]
	if r, size := utf8.DecodeRuneInString(word); size == len(word) || len(word) > len("aprox") {
		return size == len(word) && unicode.IsLetter(r)
	}
	switch strings.ToLower(word) {
	case "e.g", "i.e", "eg", "ie", "etc", "vs", "cf", "approx", "fig", "dr", "mr", "mrs", "ms", "st", "inc", "ltd",
		"p.ex", "ex", "p.ej", "ej", "aprox", "sr", "sra", "dra", "prof", "pág", "pag", "núm", "nº", "art", "ud", "uds":
		return true
	}
	return false
}

// scanNonASCII consumes one character outside ASCII.
func (s *clauseSplitter) scanNonASCII() {
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	switch chinese.SimplifyRune(r) {
	case '。', '；', '।', '؛': // full stops and semicolons
		s.endClause(s.pos, s.pos+size)
	case '！', '？', '؟':
		s.endClause(s.pos+size, s.pos+size)
	case '然', '并', '另', '顺', '同', '此', '接':
		if n := s.conjunctionLength(); n > 0 {
			s.endClause(s.pos, s.pos+n)
			return
		}
		s.pos += size
	default:
		if s.atWordStart() && token.IsWordRune(r) && !token.IsUnspaced(r) {
			s.scanWord()
			return
		}
		s.pos += size
	}
}

// conjunctionLength returns the length of the Chinese conjunction at pos, or 0.
// The character 并 also starts and ends words (并发 concurrent, 合并 merge).
func (s *clauseSplitter) conjunctionLength() int {
	const longest = len("然后")
	buf := []byte(s.text[s.pos:min(s.pos+longest, len(s.text))])
	chinese.Simplify(buf)
	rest := string(buf)
	switch rest {
	case "然后", "并且", "另外", "顺便", "同时", "此外", "接着":
		return longest
	}
	if !strings.HasPrefix(rest, "并") {
		return 0
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:s.pos])
	after, _ := utf8.DecodeRuneInString(rest[len("并"):])
	before = chinese.SimplifyRune(before)
	if strings.ContainsRune("合兼吞一", before) || strings.ContainsRune("发行列联存购入集非不没未排网", after) {
		return 0
	}
	return len("并")
}

// atWordStart reports whether a word may start at pos: after white space, an
// opening bracket or quote, or separating punctuation.
func (s *clauseSplitter) atWordStart() bool {
	if s.pos == 0 {
		return true
	}
	return strings.IndexByte(" \t\r\n,;:!?([{\"", s.text[s.pos-1]) >= 0
}

// scanWord skips the start of the word at pos, or ends the clause if the word
// is a conjunction. URLs are skipped whole, because they may contain any
// punctuation.
func (s *clauseSplitter) scanWord() {
	rest := s.text[s.pos:]
	if n := plainWordLength(rest); n > 0 && !isConjunction(rest[:n]) {
		s.pos += n
		return
	}
	near := rest[:min(len(rest), maxConjunction+1)] // bounded, because a word may be as long as the text
	if scheme := strings.Index(near, "://"); scheme > 0 && !strings.ContainsAny(near[:scheme], " \t\n") {
		address := rest[:spaceOrEnd(rest)]
		s.pos += max(scheme, len(strings.TrimRight(address, ".,;:!?)")))
		return
	}
	end := spaceOrEnd(near)
	if end > maxConjunction || !isConjunction(strings.TrimRight(near[:end], ",:;.")) {
		_, size := utf8.DecodeRuneInString(rest)
		for s.pos += size; s.pos < len(s.text) && token.IsASCIIWord(s.text[s.pos]); {
			s.pos++
		}
		return
	}
	s.endClause(s.pos, s.pos+end)
}

// spaceOrEnd returns the position of the first white space in s, or the length of s.
func spaceOrEnd(s string) int {
	if at := strings.IndexFunc(s, unicode.IsSpace); at >= 0 {
		return at
	}
	return len(s)
}

// plainWordLength returns the length of the word at the start of text if it consists of
// ASCII letters and digits, and white space or the end of the text follows; else 0. Most
// words are like this, and none of them starts a URL.
func plainWordLength(text string) int {
	n := 0
	for n < len(text) && token.IsASCIIWord(text[n]) {
		n++
	}
	if n == len(text) || text[n] == ' ' {
		return n
	}
	return 0
}

const maxConjunction = len("después,")

// isConjunction reports whether the word joins two requests.
func isConjunction(word string) bool {
	if len(word) >= maxConjunction {
		return false
	}
	for _, j := range [...]string{"and", "then", "e", "y", "depois", "luego", "después", "despues"} {
		if strings.EqualFold(word, j) {
			return true
		}
	}
	return false
}
