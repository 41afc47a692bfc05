package redact

import "strings"

// findNamed appends the values behind a word that names a secret: in code,
// settings, headers, addresses and sentences.
//
//	password=hunter2   "api_key": "…"   Bearer …   my password is hunter2   scheme://user:hunter2@host
func findNamed(text string, found []span) []span {
	for i := 0; i < len(text); i++ {
		b := text[i]
		if b != ' ' && b != '=' && b != ':' && b != '-' {
			continue
		}
		if s, ok := namedAt(text, i, b); ok {
			found = append(found, s)
			i = s.end - 1
		}
	}
	return found
}

// namedAt returns the value that the blank, "=" or ":" at i leads to.
func namedAt(text string, i int, b byte) (span, bool) {
	switch b {
	case '-':
		return flagged(text, i)
	case ' ':
		if n := verb(text[i+1:]); n > 0 {
			return assigned(text, i, i+1+n, ' ')
		}
		if last := byteAt(text, i-1) | 0x20; last == 'r' || last == 'c' {
			return credentials(text, i)
		}
		return span{}, false
	}
	if s, ok := userInfo(text, i); ok {
		return s, true
	}
	at := i + 1
	for b := byteAt(text, at); b == '=' || b == '>'; b = byteAt(text, at) { // := and => assign, too
		at++
	}
	return assigned(text, i, at, b)
}

// flagged returns the value of a flag that starts at i: --password hunter2.
func flagged(text string, i int) (span, bool) {
	if byteAt(text, i+1) != '-' || byteAt(text, i-1) > ' ' {
		return span{}, false
	}
	for i += 2; isToken(byteAt(text, i)); i++ {
	}
	if byteAt(text, i) != ' ' || byteAt(text, i+1) == '-' {
		return span{}, false
	}
	return assigned(text, i, i, ' ')
}

// verb returns the length of "is ", in some languages, that a text starts with.
func verb(text string) int {
	if len(text) < 3 || text[0]|0x20 != 'i' && text[0]|0x20 != 'e' && text[0] != "é"[0] {
		return 0
	}
	for _, v := range [...]string{"is ", "es ", "é ", "ist ", "est "} {
		if strings.HasPrefix(text, v) {
			return len(v)
		}
	}
	return 0
}

// userInfo returns "user:password@" of a URL when the colon at i opens one.
func userInfo(text string, i int) (span, bool) {
	if !strings.HasPrefix(text[i:], "://") {
		return span{}, false
	}
	start, colon := i+3, -1
	for at := start; at < len(text) && at < start+maxRead; at++ {
		switch b := text[at]; {
		case b == '@':
			if colon < 0 || at == colon+1 || text[colon+1] == '[' {
				return span{}, false
			}
			return span{start: colon + 1, end: at}, true
		case b == ':' && colon < 0:
			colon = at
		case b == '/' || b <= ' ' || b == '"' || b == '\'' || b == '<' || b == '[':
			return span{}, false
		}
	}
	return span{}, false
}

// assigned returns the value that follows position at, if the word before
// position sep names a secret and the value could be one. by is what stands
// between them: "=", ":" or, for a verb, a blank.
func assigned(text string, sep, at int, by byte) (span, bool) {
	name := nameBefore(text, sep)
	if name == noSecret {
		return span{}, false
	}
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\\') {
		at++
	}
	quote := byteAt(text, at)
	quoted := quote == '"' || quote == '\'' || quote == '`'
	goesOn := func(i int) bool { return !endsValue(text[i], by) }
	if quoted {
		at++
		goesOn = func(i int) bool {
			_, masked := labelled(text, i)
			return text[i] != quote && text[i] != '\n' && masked == 0
		}
	}
	stop := at
	for stop < len(text) && stop < at+maxRead && goesOn(stop) {
		stop++
	}
	long := stop == at+maxRead // judged by its front; if it is a secret, all of it is
	for !long && stop > at && trails(text[stop-1], quoted) {
		stop--
	}
	if !plausible(text[at:stop], name, quoted, by, byteAt(text, stop)) {
		return span{}, false
	}
	for long && stop < len(text) && goesOn(stop) {
		stop++
	}
	return span{start: at, end: stop}, true
}

// endsValue reports what a value without quotes ends at. In a query "&" does.
func endsValue(b, by byte) bool {
	return b <= ' ' || b == '&' && by == '=' || strings.IndexByte(`"'`+"`,;|<>{}[]()\\", b) >= 0
}

// trails reports what stands behind a value and is no part of it: the end of a
// sentence, or in quotes what escapes the closing one.
func trails(b byte, quoted bool) bool {
	if quoted {
		return b == '\\'
	}
	return b == '.' || b == ':' || b == '?'
}

// plausible reports whether a value could be a secret: neither the name of a
// type or a variable, nor a word of a sentence, nor one of our placeholders.
func plausible(v string, name strength, quoted bool, by, next byte) bool {
	digits, letters, others := 0, 0, 0
	for i := range len(v) {
		switch b := v[i]; {
		case isDigit(b):
			digits++
		case isLetter(b):
			letters++
		default:
			others++
		}
	}
	switch {
	case len(v) < 4 || v[0] == '[' || next == '(' || next == '[' || isFiller(v):
		return false
	case !quoted && strings.HasPrefix(v, "$"): // $VARIABLE
		return false
	case name == weak:
		return len(v) >= 8 && digits > 0 && letters > 0 && (others == 0 || len(v) >= 16 || quoted)
	case by == ' ':
		return len(v) >= 6 && letters > 0 && digits+others > 0 && digits+capitals(v) > 0
	case quoted:
		return !strings.ContainsAny(v, "<{$")
	case digits == 0 && letters == len(v):
		return by == '=' && next != '.'
	case digits == 0 && others > 0 && by == ':':
		return strings.ContainsAny(v, "!@#$%^&*+=?~")
	case digits == 0:
		return strings.IndexByte(v, '.') < 0 // settings.password
	}
	return true
}

func capitals(v string) int {
	n := 0
	for i := range len(v) {
		if 'A' <= v[i] && v[i] <= 'Z' {
			n++
		}
	}
	return n
}

// isFiller reports what stands where a secret will be, or for the lack of one.
func isFiller(v string) bool {
	if strings.Trim(v, "*") == "" || strings.Trim(v, "xX") == "" || strings.Trim(v, ".") == "" {
		return true
	}
	var buf [longest]byte
	switch lower(buf[:0], v) {
	case "true", "false", "null", "none", "nil", "undefined", "string", "str", "text", "bool", "bytes", "required", "optional",
		"<redacted>", "redacted", "hidden", "masked", "password", "passwd", "secret", "token", "changed", "expired", "wrong", "invalid", "reset", "empty", "missing", "varchar", "integer":
		return true
	}
	return false
}
