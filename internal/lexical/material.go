package lexical

import "strings"

// Marks of an HTML comment.
const (
	commentOpens  = "<!--"
	commentCloses = "-->"
)

// material finds what stands in a text beside the request, fenced code apart:
// JSON objects and HTML comments. Programs write the one and nobody sees the
// other, so neither asks for anything.
type material struct {
	text string
	last int // where the last mark that closes a comment stands, -1 without one; see looked
	// looked tells that last is known: most texts open no comment, and a text may
	// open thousands that nothing closes.
	looked bool
}

func (m *material) reset(text string) { *m = material{text: text} }

// at is the end of the object or comment that opens at position at, or at where
// none does.
func (m *material) at(at int) int {
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
func (m *material) commentEnd(at int) int {
	if !strings.HasPrefix(m.text[at:], commentOpens) {
		return at
	}
	if !m.looked {
		m.last, m.looked = strings.LastIndex(m.text, commentCloses), true
	}
	inside := at + len(commentOpens)
	if m.last < inside {
		return at
	}
	return inside + strings.Index(m.text[inside:], commentCloses) + len(commentCloses)
}

// objectEnd passes over a JSON object that has a member: to its closing brace or,
// where it is cut off or goes wrong, as far as it reads like JSON. So every byte
// is looked at once, and a brace left open hides nothing but JSON.
func objectEnd(text string, at int) int {
	key := space(text, at+1)
	end, ok := stringEnd(text, key)
	if !ok {
		return at
	}
	if end = space(text, end); end == len(text) || text[end] != ':' {
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
			if !asciiWord(c) {
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
	for end < len(text) && asciiWord(text[end]) {
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

// space is where the space at position at ends.
func space(text string, at int) int {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	return at
}
