package lexical

import "strings"

// Marks of an HTML comment.
const (
	commentOpen  = "<!--"
	commentClose = "-->"
)

// embeddedContent finds what stands in a text beside the request, fenced code apart:
// JSON objects and HTML comments. Programs write the one and nobody sees the
// other, so neither asks for anything.
type embeddedContent struct {
	text           string
	lastCommentEnd int // where the last mark that closes a comment stands, -1 without one; see looked
	// looked tells that last is known: most texts open no comment, and a text may
	// open thousands that nothing closes.
	searched bool
}

func (m *embeddedContent) reset(text string) { *m = embeddedContent{text: text} }

// endAt is the end of the object or comment that opens at position at, or at where
// none does.
func (m *embeddedContent) endAt(at int) int {
	switch m.text[at] {
	case '{':
		return objectEnd(m.text, at)
	case '<':
		return m.commentEnd(at)
	}
	return at
}

// commentEnd passes over a comment. What nothing closes is none: who asks about
// <!-- asks on.
func (m *embeddedContent) commentEnd(at int) int {
	if !strings.HasPrefix(m.text[at:], commentOpen) {
		return at
	}
	if !m.searched {
		m.lastCommentEnd, m.searched = strings.LastIndex(m.text, commentClose), true
	}
	inside := at + len(commentOpen)
	if m.lastCommentEnd < inside {
		return at
	}
	return inside + strings.Index(m.text[inside:], commentClose) + len(commentClose)
}

// objectEnd passes over a JSON object that has a member: to its closing brace or,
// where it is cut off or goes wrong, as far as it reads like JSON. So every byte
// is looked at once, and a brace left open hides nothing but JSON.
func objectEnd(text string, at int) int {
	key := skipSpace(text, at+1)
	end, ok := stringEnd(text, key)
	if !ok {
		return at
	}
	if end = skipSpace(text, end); end == len(text) || text[end] != ':' {
		return at
	}
	for depth := 1; depth > 0 && end < len(text); {
		switch c := text[end]; c {
		case '"':
			if end, ok = stringEnd(text, end); !ok {
				return end
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ' ', '\t', '\r', '\n', ':', ',', '+', '-', '.':
		default:
			if !isASCIIWord(c) {
				return end
			}
			next := scalarEnd(text, end)
			if next == end {
				return end
			}
			end = next
			continue
		}
		end++
	}
	return end
}

// stringEnd is the end of the JSON string that opens at position at, or where it
// stops being one: at the end of the line.
func stringEnd(text string, at int) (end int, ok bool) {
	if at == len(text) || text[at] != '"' {
		return at, false
	}
	for end = at + 1; end < len(text); end++ {
		switch text[end] {
		case '"':
			return end + 1, true
		case '\n':
			return end, false
		case '\\':
			end++
		}
	}
	return len(text), false
}

// scalarEnd is the end of the number or literal at position at, or at where it is
// some other word.
func scalarEnd(text string, at int) int {
	end := at
	for end < len(text) && isASCIIWord(text[end]) {
		end++
	}
	switch word := text[at:end]; {
	case word == "true", word == "false", word == "null":
	case '0' <= word[0] && word[0] <= '9': // 1, and 9e9
	default:
		return at
	}
	return end
}

// skipSpace is where the space at position at ends.
func skipSpace(text string, at int) int {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	return at
}

// fencedBlock is where a fenced code block stands in a text.
type fencedBlock struct {
	infoStart int // first byte of the info line, behind the backticks
	bodyStart int // the end of the info line
	end       int // behind the closing backticks; the end of the text without them
}

// fenceAt reports the block that three or more backticks at position at open.
// It is more forgiving than CommonMark, as people are: a fence may open in the
// middle of a line and close in one. Backticks that close on their own line
// quote a few words, and a lone fence in the middle of a line opens nothing.
func fenceAt(text string, at int) (fencedBlock, bool) {
	ticks := countBackticks(text, at)
	if ticks < 3 {
		return fencedBlock{}, false
	}
	f := fencedBlock{infoStart: at + ticks}
	rest := text[f.infoStart:]
	// The closing comes before the line end is looked for: a long line of quoted
	// words is then passed over in one go, not once for each of them.
	closing := strings.Index(rest, text[at:f.infoStart])
	f.bodyStart = strings.IndexByte(rest[:indexOrEnd(closing, rest)], '\n')
	switch {
	case closing >= 0 && f.bodyStart < 0:
		return fencedBlock{}, false
	case closing >= 0:
		f.end = f.infoStart + closing
		f.end += countBackticks(text, f.end)
	case strings.TrimLeft(text[lineStart(text, at):at], " ") == "":
		f.end = len(text)
	default:
		return fencedBlock{}, false
	}
	f.bodyStart = f.infoStart + indexOrEnd(f.bodyStart, rest)
	return f, true
}

// indexOrEnd is at or, when nothing was found there, the end of s.
func indexOrEnd(at int, s string) int {
	if at < 0 {
		return len(s)
	}
	return at
}

// countBackticks counts the backticks that stand at position at.
func countBackticks(text string, at int) int {
	n := 0
	for at+n < len(text) && text[at+n] == '`' {
		n++
	}
	return n
}

func lineStart(text string, at int) int {
	return strings.LastIndexByte(text[:at], '\n') + 1
}
