package redact

import "strings"

// findNamedSecrets appends values after a name of a secret in code, settings,
// headers, URLs and sentences:
//
//	password=hunter2   "api_key": "…"   Bearer …   my password is hunter2   scheme://user:hunter2@host
//	<password>hunter2</password>   curl -u user:hunter2   Cookie: session=…
//	set("password", "hunter2")   var token string = "…"   token: |⏎ …   name="token" value="…"
func findNamedSecrets(text string, found []span) []span {
	for i := 0; i < len(text); i++ {
		if !separators[text[i]] {
			continue
		}
		if s, ok := namedSecretAt(text, i, text[i]); ok {
			found = append(found, s)
			i = s.end - 1
		}
	}
	return found
}

// separators are the bytes before a value.
var separators = [256]bool{' ': true, '=': true, ':': true, '-': true, '>': true, ',': true, '(': true}

// namedSecretAt returns the value after the separator b at i.
func namedSecretAt(text string, i int, b byte) (span, bool) {
	switch b {
	case ',', '(':
		return argumentValue(text, i, b)
	case '-':
		return flagValue(text, i)
	case '>':
		return elementValue(text, i)
	case ' ':
		if n := verbLength(text[i+1:]); n > 0 {
			return assignedValue(text, i, i+1+n, ' ')
		}
		if last := byteAt(text, i-1) | 0x20; last == 'r' || last == 'c' {
			return authCredentials(text, i)
		}
		return span{}, false
	}
	if s, ok := urlPassword(text, i); ok {
		return s, true
	}
	name, at := i, i+1
	for b := byteAt(text, at); at < i+maxAssign && strings.IndexByte(":=>", b) >= 0; b = byteAt(text, at) { // :=, :::= and => assign, too
		at++
	}
	if at > i+1 && text[at-1] == ':' {
		return span{}, false // std::string
	}
	for b == '=' && name > i-maxAssign && strings.IndexByte("?+|", byteAt(text, name-1)) >= 0 { // ?=, ||= and +=, too
		name--
	}
	return assignedValue(text, trimVerb(text, name), at, b)
}

// argumentValue returns the quoted value after a name and "(", or after a quoted name and
// a comma: setPassword("hunter2"), set("password", "hunter2"). In lines of values without
// spaces, which are CSV, nothing is quoted.
func argumentValue(text string, i int, b byte) (span, bool) {
	before, at := byteAt(text, i-1), i+1
	quoted := before == '"' || before == '\''
	if !quoted && !isNameByte(before) {
		return span{}, false
	}
	for quoted && at < i+maxAssign && byteAt(text, at) == ' ' {
		at++
	}
	if next := byteAt(text, at); (quoted || b == '(') && next != '"' && next != '\'' && (next != '`' || b == ',') || next == ' ' {
		return span{}, false
	}
	return assignedValue(text, i, at, b)
}

// maxExamined bounds the part of a value that decides whether it is a secret.
const maxExamined = 96

// minValue is the minimum length of a secret in a text.
const minValue = 4

// maxAssign bounds an assignment operator; ":::=" is the longest.
const maxAssign = 4

// flagValue returns the value of a command line flag that starts at i:
// --password hunter2, -u user:hunter2.
func flagValue(text string, i int) (span, bool) {
	if byteAt(text, i-1) > ' ' {
		return span{}, false
	}
	end := pastToken(text, i)
	if next := byteAt(text, end); next != ' ' && next != '=' || byteAt(text, end+1) == '-' {
		return span{}, false
	}
	switch flag := text[i:end]; {
	case flag == "-u", flag == "--user", flag == "--proxy-user":
		at := end + 1
		for at < min(len(text), end+maxAssign) && text[at] == ' ' {
			at++
		}
		return loginPassword(text, i, at)
	case len(flag) < 2 || flag[1] != '-' || byteAt(text, end) == '=':
		return span{}, false
	}
	return assignedValue(text, end, end, ' ')
}

// elementValue returns the content of the XML element whose start tag ends at
// i: <password>hunter2</password>.
func elementValue(text string, i int) (span, bool) {
	open := i
	for open > 0 && i-open < maxName && isNameByte(text[open-1]) {
		open--
	}
	if b := byteAt(text, open-1); open == i || b != '<' && b != ':' {
		return span{}, false
	}
	name := strengthOf(text[open:i])
	if name != nameStrong && name != nameWeak {
		return span{}, false
	}
	at := pastSpace(text, i+1)
	stop := at
	for stop < len(text) && text[stop] != '<' && text[stop] != '\n' && stop < at+maxRead {
		if _, masked := parsePlaceholder(text, stop); masked > 0 {
			break
		}
		stop++
	}
	if tag := pastSpace(text, stop); byteAt(text, tag) != '<' || byteAt(text, tag+1) != '/' || !isPlausible(text[at:stop], name, true, '>', '<') {
		return span{}, false
	}
	return span{start: at, end: stop}, true
}

// pastSpace skips white space and line breaks, up to a bound.
func pastSpace(text string, i int) int {
	for stop := min(len(text), i+maxName); i < stop && strings.IndexByte(" \t\r\n", text[i]) >= 0; {
		i++
	}
	return i
}

// verbs are translations of "is".
var verbs = [...]string{" is ", " es ", " é ", " ist ", " est "}

// verbLength returns the length of the verb and the space that text starts
// with.
func verbLength(text string) int {
	if len(text) < 3 || text[0]|0x20 != 'i' && text[0]|0x20 != 'e' && text[0] != "é"[0] {
		return 0
	}
	for _, v := range verbs {
		if strings.HasPrefix(text, v[1:]) {
			return len(v) - 1
		}
	}
	return 0
}

// trimVerb returns the start of a verb before the colon at i (password is: …),
// or i.
func trimVerb(text string, i int) int {
	for _, v := range verbs {
		if v = v[:len(v)-1]; strings.HasSuffix(text[:i], v) {
			return i - len(v)
		}
	}
	return i
}

// urlPassword returns the password of "user:password@" in a URL if the colon at
// i starts "://". The password may contain "@"; the last one before the path
// counts.
func urlPassword(text string, i int) (span, bool) {
	if !strings.HasPrefix(text[i:], "://") {
		return span{}, false
	}
	start, colon, end := i+3, -1, 0
	for at := start; at < len(text) && at < start+maxRead; at++ {
		b := text[at]
		switch {
		case b == '@' && (colon < 0 || at == colon+1 || text[colon+1] == '['):
			return span{}, false
		case b == '@':
			end = at
		case b == ':' && colon < 0:
			colon = at
		}
		if b == '/' || b <= ' ' || b == '"' || b == '\'' || b == '<' || b == '[' || end > 0 && strings.IndexByte("?#,;>)]}`\\", b) >= 0 {
			break
		}
	}
	return span{start: colon + 1, end: end}, end > 0
}

// assignedValue returns the value at position at, if the name that ends before nameEnd is
// one of a secret and the value is plausible. The separator is "=", ":", "," or "(" of an
// argument or, for a verb, a space.
func assignedValue(text string, nameEnd, at int, separator byte) (span, bool) {
	name, typed := strengthBefore(text, nameEnd)
	if name == nameNone {
		return span{}, false
	}
	if name == nameStrong && (separator == ',' || separator == '(') { // lists of names
		name = nameWeak
	}
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\\') {
		at++
	}
	if separator == ':' {
		at = pastBlockIndicator(text, at)
	}
	v := valueReader{text: text, separator: separator}
	if quote := byteAt(text, at); quote == '"' || quote == '\'' || quote == '`' {
		v.quote, v.escapes = quote, countBackslashes(text, at)
		at++
	}
	if name == nameCookie {
		if separator != ':' {
			return span{}, false
		}
		return cookieValue(text, at)
	}
	if typed && v.quote == 0 || separator == ',' && v.quote == 0 && len(text)-at < minToken {
		return span{}, false
	}
	stop := at
	for stop < len(text) && stop < at+maxExamined && (v.continues(stop) || stop < at+minValue && name == nameStrong && v.joinsNext(stop)) {
		stop++
	}
	end := v.trimEnd(at, stop)
	if !isPlausible(text[at:end], name, v.quote != 0, separator, byteAt(text, end)) {
		return span{}, false
	}
	for stop < len(text) && (v.continues(stop) || name == nameStrong && v.joinsNext(stop)) { // only its start was examined
		stop++
	}
	return span{start: at, end: v.trimEnd(at, stop)}, true
}

// pastBlockIndicator skips the beginning of a YAML block: the value starts in the next
// line.
func pastBlockIndicator(text string, i int) int {
	at := i
	if b := byteAt(text, at); b != '|' && b != '>' {
		return i
	}
	if at++; byteAt(text, at) == '-' || byteAt(text, at) == '+' {
		at++
	}
	if b := byteAt(text, at); b != '\n' && b != '\r' {
		return i
	}
	return pastSpace(text, at)
}

// valueReader describes the context of a value.
type valueReader struct {
	text      string
	separator byte // before the value
	quote     byte // enclosing quote, or 0
	escapes   int  // backslashes before the quote, for nested JSON
}

// continues reports whether the byte at i belongs to the value.
func (v valueReader) continues(i int) bool {
	b := v.text[i]
	if v.quote == 0 {
		return !v.isEnd(b)
	}
	if b == v.quote {
		return countBackslashes(v.text, i)%(2*v.escapes+2) > v.escapes
	}
	_, masked := parsePlaceholder(v.text, i)
	return b != '\n' && masked == 0
}

// isEnd reports whether b ends an unquoted value. "&" does in a query.
func (v valueReader) isEnd(b byte) bool {
	return b <= ' ' || b == '&' && v.separator == '=' || strings.IndexByte(`"'`+"`,;|<>{}[]()\\", b) >= 0
}

// joinsNext reports whether the punctuation at i, which usually ends an
// unquoted value, is part of it: no space and no further pair of a list
// follows.
func (v valueReader) joinsNext(i int) bool {
	b := v.text[i]
	if v.quote != 0 || v.separator == ' ' || b != ',' && b != ';' && b != '&' || v.isEnd(byteAt(v.text, i+1)) {
		return false
	}
	at := i + 1
	for at < len(v.text) && at < i+maxName && (isNameByte(v.text[at]) || b == ';' && v.text[at] == ' ') {
		at++
	}
	next := byteAt(v.text, at)
	return next != '=' && next != ':'
}

// trimEnd returns the end of the value without trailing punctuation or escapes
// of the closing quote.
func (v valueReader) trimEnd(at, stop int) int {
	if v.quote != 0 {
		if byteAt(v.text, stop) != v.quote {
			return stop
		}
		return max(at, stop-v.escapes)
	}
	for stop > at && strings.IndexByte(".:?", v.text[stop-1]) >= 0 {
		stop--
	}
	return stop
}

// countBackslashes counts the backslashes before i, up to maxEscapes.
func countBackslashes(text string, i int) int {
	n := 0
	for n < maxEscapes && byteAt(text, i-n-1) == '\\' {
		n++
	}
	return n
}

// maxEscapes is enough for four levels of nested JSON.
const maxEscapes = 16
