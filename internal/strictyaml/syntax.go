package strictyaml

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// checkText rejects data that is not YAML text, for example other encodings. The
// parser would reject most of it too, but without a position.
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
			return &Error{Line: line, Column: column, Detail: "contains the control character " + strconv.QuoteToASCII(string(r)) + "; remove it"}
		case r == '\n':
			line, column = line+1, 0
		}
		i += size
	}
	return findDirective(text)
}

// isPrintable reports whether YAML allows r unescaped (YAML 1.2 §5.1).
func isPrintable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < 0x20, r >= 0x7f && r < 0xa0, r == 0xfeff, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// findDirective rejects a directive: a line that starts with % before the document.
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

// parserMessage matches the errors of the parser, whose lines count from 0. The
// lines in errors of the scanner count from 1.
var parserMessage = regexp.MustCompile(`^did not find expected (<|node content|key|',' or|'-')|^found (duplicate|incompatible|undefined)`)

var yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// translateError converts an error of the library. The library reports no column,
// so the position is the first character of the line.
func translateError(err error, data []byte) *Error {
	if typeErr, ok := errors.AsType[*yaml.TypeError](err); ok {
		return &Error{Detail: strings.Join(typeErr.Errors, "; ")}
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
		for _, near := range []int{line, line + 1} { // some errors have the previous line
			at, text := lineOf(data, near)
			if tab := bytes.IndexByte(text[:indentOf(text)], '\t'); tab >= 0 {
				return &Error{Line: at, Column: tab + 1, Detail: "a tab cannot indent; use spaces"}
			}
		}
	}
	if strings.Contains(message, "',' or ") {
		if at, column := findQuestionMark(data, line); at > 0 {
			const hint = "a ? ends an unquoted text inside [ ] and { }; quote the text"
			return &Error{Line: at, Column: column, Detail: hint + " (" + message + ")"}
		}
	}
	if strings.Contains(message, "node content") || strings.Contains(message, "expected ':'") {
		if at, column, bracket := findOpenBracket(data, line); at > 0 {
			hint := "the list that [ opens here is not closed: add ], or remove the ["
			if bracket == '{' {
				hint = "the mapping that { opens here is not closed: add }, or remove the {"
			}
			return &Error{Line: at, Column: column, Detail: hint + " (" + message + ")"}
		}
	}
	line, text := lineOf(data, line)
	column := 1 + indentOf(text)
	if strings.Contains(message, "alphabetic or numeric") {
		column = 1 + max(column-1, bytes.IndexAny(text, "*&"))
	}
	return &Error{Line: line, Column: column, Detail: describeParserError(message)}
}

// findOpenBracket returns the position of the innermost [ or {, at the line or before it, that
// begins a value and that the file does not close, and the bracket; zeros if there is none. A file
// that continues after the line has another mistake.
func findOpenBracket(data []byte, line int) (at, column int, bracket byte) {
	const maxLines, maxBytes = 100, 16 << 10 // of a list or a mapping
	size := 0
	lines := slices.Collect(bytes.Lines(data))
	last, _ := lineOf(data, len(lines))
	if line < last {
		return 0, 0, 0
	}
	for from := last; from > max(last-maxLines, 0); from-- {
		if size += len(lines[from-1]); size > maxBytes {
			break
		}
		type position struct {
			line, column int
			bracket      byte
		}
		var open []position
		for n := from; n <= last; n++ {
			previous := byte(':') // the last byte that is no white space
			for i, b := range withoutQuoted(lines[n-1]) {
				switch {
				case (b == '[' || b == '{') && strings.IndexByte("[{,:-", previous) >= 0:
					open = append(open, position{n, 1 + utf8.RuneCount(lines[n-1][:i]), b})
				case b == ']' || b == '}':
					open = open[:max(len(open)-1, 0)]
				}
				if b > ' ' {
					previous = b
				}
			}
		}
		if len(open) > 0 {
			p := open[len(open)-1]
			return p.line, p.column, p.bracket
		}
	}
	return 0, 0, 0
}

// withoutQuoted returns the line with quoted texts and the comment replaced by spaces.
func withoutQuoted(line []byte) []byte {
	out, quote := bytes.Clone(line), byte(0)
	previous := byte(',') // the last byte that is no white space
	for i, b := range line {
		switch {
		case quote != 0:
			out[i] = ' '
			if b == quote && (b == '\'' || line[i-1] != '\\') {
				quote = 0
			}
		case b == '#' && (i == 0 || line[i-1] == ' '):
			return out[:i]
		case (b == '"' || b == '\'') && strings.IndexByte("[{,:-", previous) >= 0:
			quote, out[i] = b, ' '
		}
		if b > ' ' {
			previous = b
		}
	}
	return out
}

// findQuestionMark returns the position of the first question mark in an unquoted text,
// from the line on to the end of the list or mapping in brackets that begins or continues
// there; zeros if there is none. The library ends such a text at the mark.
func findQuestionMark(data []byte, from int) (line, column int) {
	depth, previous := 0, byte(',') // previous is the last byte that is no white space
	var quote byte
lines:
	for text := range bytes.Lines(data) {
		if line++; line < from {
			continue
		}
		for i, b := range text {
			space := i == 0 || text[i-1] == ' '
			switch {
			case quote != 0:
				if b == quote && (b == '\'' || text[max(i-1, 0)] != '\\') {
					quote = 0
				}
			case b == '#' && space:
				continue lines
			case (b == '"' || b == '\'') && strings.IndexByte("[{,:", previous) >= 0:
				quote = b
			case b == '[' || b == '{':
				depth++
			case b == ']' || b == '}':
				if depth--; depth <= 0 {
					return 0, 0
				}
			case b == '?' && !space && strings.IndexByte("[{,:", previous) < 0:
				return line, 1 + utf8.RuneCount(text[:i])
			}
			if b > ' ' {
				previous = b
			}
		}
	}
	return 0, 0
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) }

// describeParserError returns the usual cause of a parser's message, followed by the
// message.
func describeParserError(message string) string {
	hints := []struct{ part, hint string }{
		{"exceeded max depth", "nests far too deep"},
		{"did not find expected key", "the indentation does not fit, or something is wrong just before"},
		{"',' or ']'", "the list that [ opens is not closed, or a comma is missing"},
		{"',' or '}'", "the mapping that { opens is not closed, or a comma is missing"},
		{"'-' indicator", `a list item must start with "- ", in line with the others, and nothing may follow a closing quote`},
		{"mapping values are not allowed", `a second ": " on one line, or wrong indentation; quote a value that contains ": "`},
		{"could not find expected ':'", `there is no ": " after this key`},
		{"found unexpected end of stream", "a quoted text is not closed"},
		{"cannot start any token", "a value cannot start with this character; quote it"},
		{"alphabetic or numeric character", `* and & are special in YAML; quote a value that begins with one, as in "*"`},
		{"unknown escape character", `inside double quotes a backslash must be written \\`},
		{"node content", "a closing or separating character is in the place of a value"},
	}
	for _, h := range hints {
		if strings.Contains(message, h.part) {
			return h.hint + " (" + message + ")"
		}
	}
	return "is not YAML: " + message
}

// lineColumn converts a byte offset to a line and a column, both from 1.
func lineColumn(data []byte, offset int) (line, column int) {
	before := data[:min(max(offset, 0), len(data))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// lineOf returns the line with the number, or the last line that is not blank if
// there are fewer.
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

// shortenText limits a part of the file in an error text.
func shortenText(s string) string {
	const maxLen = 64
	if len(s) <= maxLen {
		return s
	}
	cut := maxLen
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
