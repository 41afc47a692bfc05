package token

import "strings"

// Delimiters of an HTML comment.
const (
	commentOpen  = "<!--"
	commentClose = "-->"
)

// Embedded finds JSON objects and HTML comments in a text. They are not
// part of the request, because programs write the former and readers do not see
// the latter. (FencedBlock finds code.)
type Embedded struct {
	Text string

	lastCommentEnd int // position of the last comment end, -1 if none; valid if searched
	// searched reports that lastCommentEnd is known. It is computed once,
	// because a text may open thousands of comments that are never closed.
	searched bool
}

// NewEmbedded returns the embedded content of a text.
func NewEmbedded(text string) Embedded { return Embedded{Text: text} }

// EndAt returns the end of the object or comment that opens at the position, or
// the position itself if none does.
func (m *Embedded) EndAt(at int) int {
	switch m.Text[at] {
	case '{':
		return objectEnd(m.Text, at)
	case '<':
		return m.commentEnd(at)
	}
	return at
}

// commentEnd returns the end of a comment. If it is not closed, it is not a
// comment, because a question about <!-- is a request.
func (m *Embedded) commentEnd(at int) int {
	if !strings.HasPrefix(m.Text[at:], commentOpen) {
		return at
	}
	if !m.searched {
		m.lastCommentEnd, m.searched = strings.LastIndex(m.Text, commentClose), true
	}
	inside := at + len(commentOpen)
	if m.lastCommentEnd < inside {
		return at
	}
	return inside + strings.Index(m.Text[inside:], commentClose) + len(commentClose)
}

// objectEnd returns the end of a JSON object with at least one member: after
// its closing brace or, if it is truncated or malformed, at the first byte that
// is not JSON. Each byte is read once, and an unclosed brace hides nothing but
// JSON.
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
			if !IsASCIIWord(c) {
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

// stringEnd returns the end of the JSON string at the position. It fails at a
// line break.
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

// scalarEnd returns the end of the number or literal at the position, or the
// position itself if the word is neither.
func scalarEnd(text string, at int) int {
	end := at
	for end < len(text) && IsASCIIWord(text[end]) {
		end++
	}
	switch word := text[at:end]; {
	case word == "true", word == "false", word == "null":
	case '0' <= word[0] && word[0] <= '9': // for example 1 or 9e9
	default:
		return at
	}
	return end
}

// skipSpace returns the end of the white space at the position.
func skipSpace(text string, at int) int {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	return at
}

// FencedBlock is the position of a fenced code block in a text.
type FencedBlock struct {
	infoStart int // first byte after the backticks
	bodyStart int // end of the info line
	End       int // after the closing backticks, or the end of the text
}

// FenceAt returns the block that the three or more backticks at the position
// open. It is more lenient than CommonMark: a fence may open and close in the
// middle of a line. Backticks that close on their own line quote a few words,
// and a single fence in the middle of a line opens nothing.
func FenceAt(text string, at int) (FencedBlock, bool) {
	ticks := CountBackticks(text, at)
	if ticks < 3 {
		return FencedBlock{}, false
	}
	f := FencedBlock{infoStart: at + ticks}
	rest := text[f.infoStart:]
	// Find the closing fence before the line end: a long line of quoted words
	// is then skipped at once, and not searched again for each word.
	closing := strings.Index(rest, text[at:f.infoStart])
	f.bodyStart = strings.IndexByte(rest[:indexOrEnd(closing, rest)], '\n')
	switch {
	case closing >= 0 && f.bodyStart < 0:
		return FencedBlock{}, false
	case closing >= 0:
		f.End = f.infoStart + closing
		f.End += CountBackticks(text, f.End)
	case strings.TrimLeft(text[lineStart(text, at):at], " ") == "":
		f.End = len(text)
	default:
		return FencedBlock{}, false
	}
	f.bodyStart = f.infoStart + indexOrEnd(f.bodyStart, rest)
	return f, true
}

// indexOrEnd returns at, or the length of s if at is negative.
func indexOrEnd(at int, s string) int {
	if at < 0 {
		return len(s)
	}
	return at
}

// CountBackticks counts the backticks at the position.
func CountBackticks(text string, at int) int {
	n := 0
	for at+n < len(text) && text[at+n] == '`' {
		n++
	}
	return n
}

func lineStart(text string, at int) int {
	return strings.LastIndexByte(text[:at], '\n') + 1
}
