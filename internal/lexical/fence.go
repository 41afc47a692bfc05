package lexical

import "strings"

// fence is where a fenced code block stands in a text.
type fence struct {
	info int // first byte of the info line, behind the backticks
	body int // the end of the info line
	end  int // behind the closing backticks; the end of the text without them
}

// fenceAt reports the block that three or more backticks at position at open.
// It is more forgiving than CommonMark, as people are: a fence may open in the
// middle of a line and close in one. Backticks that close on their own line
// quote a few words, and a lone fence in the middle of a line opens nothing.
func fenceAt(text string, at int) (fence, bool) {
	ticks := ticksAt(text, at)
	if ticks < 3 {
		return fence{}, false
	}
	f := fence{info: at + ticks}
	rest := text[f.info:]
	// The closing comes before the line end is looked for: a long line of quoted
	// words is then passed over in one go, not once for each of them.
	closing := strings.Index(rest, text[at:f.info])
	f.body = strings.IndexByte(rest[:within(closing, rest)], '\n')
	switch {
	case closing >= 0 && f.body < 0:
		return fence{}, false
	case closing >= 0:
		f.end = f.info + closing
		f.end += ticksAt(text, f.end)
	case strings.TrimLeft(text[lineStart(text, at):at], " ") == "":
		f.end = len(text)
	default:
		return fence{}, false
	}
	f.body = f.info + within(f.body, rest)
	return f, true
}

// within is at or, when nothing was found there, the end of s.
func within(at int, s string) int {
	if at < 0 {
		return len(s)
	}
	return at
}

// ticksAt counts the backticks that stand at position at.
func ticksAt(text string, at int) int {
	n := 0
	for at+n < len(text) && text[at+n] == '`' {
		n++
	}
	return n
}

func lineStart(text string, at int) int {
	return strings.LastIndexByte(text[:at], '\n') + 1
}
