package strictyaml

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// checkText finds what keeps data from being YAML text at all. The parser
// would find most of it too, but without saying where.
func checkText(data []byte) *Error {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\x00\x00\xfe\xff"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return &Error{Line: 1, Column: 1, Detail: "is UTF-16 or UTF-32; save it as UTF-8"}
		}
	}
	if len(data) >= 2 && (data[0] == 0) != (data[1] == 0) {
		return &Error{Line: 1, Column: 1, Detail: "looks like UTF-16; save it as UTF-8"}
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	line, column := 1, 1
	for i := 0; i < len(text); column++ {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		switch {
		case r == utf8.RuneError && size == 1:
			return &Error{Line: line, Column: column, Detail: "is not valid UTF-8 here (byte 0x" + strconv.FormatUint(uint64(text[i]), 16) + ")"}
		case !isPrintable(r):
			return &Error{Line: line, Column: column, Detail: "holds the control character " + strconv.QuoteToASCII(string(r)) + "; remove it"}
		case r == '\n':
			line, column = line+1, 0
		}
		i += size
	}
	return findDirective(text)
}

// isPrintable says which characters YAML allows unescaped (YAML 1.2 §5.1).
func isPrintable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// findDirective finds a directive: a line that starts with % before the document.
func findDirective(text []byte) *Error {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		switch trimmed := bytes.TrimSpace(line); {
		case len(trimmed) == 0, trimmed[0] == '#':
		case line[0] == '%':
			word, _, _ := bytes.Cut(trimmed, []byte(" "))
			return &Error{Line: n, Column: 1, Detail: "directives (" + shortenText(string(word)) + ") are not supported; remove the line"}
		default:
			return nil
		}
	}
	return nil
}

// parserMessage matches the errors whose line the parser counts from 0; those of
// its scanner count from 1.
var parserMessage = regexp.MustCompile(`^did not find expected (<|node content|key|',' or|'-')|^found (duplicate|incompatible|undefined)`)

var yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// translateError turns an error of the parser into plain words with a place: the line
// it names and, since it names no column, the first character on that line.
func translateError(err error, data []byte) *Error {
	if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
		return &Error{Detail: strings.Join(wrong.Errors, "; ")}
	}
	line, message := 1, err.Error()
	if m := yamlMessage.FindStringSubmatch(message); m != nil {
		message = m[2]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1])
			if parserMessage.MatchString(message) {
				line++
			}
		}
	}
	if name, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		name = strings.TrimSuffix(name, "' referenced")
		line, column := lineColumn(data, bytes.Index(data, []byte("*"+name)))
		return &Error{Line: line, Column: column, Detail: "aliases (*" + shortenText(name) + ") are not supported; write the value out"}
	}
	if strings.Contains(message, "tab character") || strings.Contains(message, "cannot start any token") {
		for _, near := range []int{line, line + 1} { // it counts a line too few for some
			at, text := lineOf(data, near)
			if tab := bytes.IndexByte(text[:indentOf(text)], '\t'); tab >= 0 {
				return &Error{Line: at, Column: tab + 1, Detail: "a tab cannot indent; use spaces"}
			}
		}
	}
	line, text := lineOf(data, line)
	column := 1 + indentOf(text)
	if strings.Contains(message, "alphabetic or numeric") {
		column = 1 + max(column-1, bytes.IndexAny(text, "*&"))
	}
	return &Error{Line: line, Column: column, Detail: describeParserError(message)}
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) }

// describeParserError says what a parser's message usually means. The message itself
// follows: somebody may know it.
func describeParserError(message string) string {
	hints := []struct{ part, hint string }{
		{"exceeded max depth", "nests far too deep"},
		{"did not find expected key", "the indentation does not fit, or something is wrong just before"},
		{"',' or ']'", "the list that [ opens is not closed, or a comma is missing"},
		{"',' or '}'", "the mapping that { opens is not closed, or a comma is missing"},
		{"'-' indicator", `a list item must start with "- ", in line with the others`},
		{"mapping values are not allowed", `a second ": " on one line, or wrong indentation; quote a value that contains ": "`},
		{"could not find expected ':'", `there is no ": " after this key`},
		{"found unexpected end of stream", "a quoted text is not closed"},
		{"cannot start any token", "a value cannot start with this character; quote it"},
		{"alphabetic or numeric character", `* and & mean something to YAML; quote a value that begins with one, as in "*"`},
		{"unknown escape character", `inside double quotes a backslash must be written \\`},
		{"node content", "something that closes or separates stands where a value should"},
	}
	for _, h := range hints {
		if strings.Contains(message, h.part) {
			return h.hint + " (" + message + ")"
		}
	}
	return "is not YAML: " + message
}

// lineColumn counts lines and characters, both from 1, up to the byte offset.
func lineColumn(data []byte, offset int) (line, column int) {
	before := data[:min(max(offset, 0), len(data))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// lineOf returns the text of a line (from 1), or the last one that has any text
// when there are fewer.
func lineOf(data []byte, want int) (line int, text []byte) {
	n := 0
	for t := range bytes.Lines(data) {
		n++
		if t = bytes.TrimRight(t, "\r\n"); len(bytes.TrimSpace(t)) > 0 {
			line, text = n, t
		}
		if n >= want {
			break
		}
	}
	return max(line, 1), text
}

// shortenText bounds what an error text repeats of a file.
func shortenText(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
