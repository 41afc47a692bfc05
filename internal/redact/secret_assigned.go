package redact

import "strings"

// findNamed appends the values behind a word that names a secret: in code,
// settings, headers, addresses and sentences.
//
//	password=hunter2   "api_key": "…"   Bearer …   my password is hunter2   scheme://user:hunter2@host
//	<password>hunter2</password>   curl -u user:hunter2   Cookie: session=…
func findNamed(text string, found []span) []span {
	for i := 0; i < len(text); i++ {
		b := text[i]
		if b != ' ' && b != '=' && b != ':' && b != '-' && b != '>' {
			continue
		}
		if s, ok := namedAt(text, i, b); ok {
			found = append(found, s)
			i = s.end - 1
		}
	}
	return found
}

// namedAt returns the value that the blank, "=", ":", "-" or ">" at i leads to.
func namedAt(text string, i int, b byte) (span, bool) {
	switch b {
	case '-':
		return flagged(text, i)
	case '>':
		return element(text, i)
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
	for b := byteAt(text, at); at < i+maxAssign && (b == '=' || b == '>'); b = byteAt(text, at) { // := and => assign, too
		at++
	}
	return assigned(text, beforeVerb(text, i), at, b)
}

// maxJudged bounds how far a value is read to judge it. If it is a secret, all of
// it is.
const maxJudged = 96

// minValue is the length of the shortest value that is a secret in a text.
const minValue = 4

// maxAssign bounds the bytes of what assigns: "===" has the most.
const maxAssign = 3

// flagged returns the value of a flag that starts at i: --password hunter2, and
// -u user:hunter2.
func flagged(text string, i int) (span, bool) {
	if byteAt(text, i-1) > ' ' {
		return span{}, false
	}
	end := pastToken(text, i)
	if byteAt(text, end) != ' ' || byteAt(text, end+1) == '-' {
		return span{}, false
	}
	switch flag := text[i:end]; {
	case flag == "-u", flag == "--user", flag == "--proxy-user":
		return login(text, i, end+1)
	case len(flag) < 2 || flag[1] != '-':
		return span{}, false
	}
	return assigned(text, end, end, ' ')
}

// element returns what stands in an element of XML whose tag ends at i:
// <password>hunter2</password>.
func element(text string, i int) (span, bool) {
	open := i
	for open > 0 && i-open < maxName && isName(text[open-1]) {
		open--
	}
	if b := byteAt(text, open-1); open == i || b != '<' && b != ':' {
		return span{}, false
	}
	name := named(text[open:i])
	if name != strong && name != weak {
		return span{}, false
	}
	at, stop := i+1, i+1
	for stop < len(text) && text[stop] != '<' && text[stop] != '\n' && stop < at+maxRead {
		if _, masked := labelled(text, stop); masked > 0 {
			break
		}
		stop++
	}
	if byteAt(text, stop) != '<' || byteAt(text, stop+1) != '/' || !plausible(text[at:stop], name, true, '>', '<') {
		return span{}, false
	}
	return span{start: at, end: stop}, true
}

// verbs are "is" in some languages.
var verbs = [...]string{" is ", " es ", " é ", " ist ", " est "}

// verb returns the length of a verb and the blank behind it that a text starts
// with.
func verb(text string) int {
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

// beforeVerb returns where a verb before the colon at i stands, with the blank in
// front of it (password is: …); i where none does.
func beforeVerb(text string, i int) int {
	for _, v := range verbs {
		if v = v[:len(v)-1]; strings.HasSuffix(text[:i], v) {
			return i - len(v)
		}
	}
	return i
}

// userInfo returns the password of "user:password@" of a URL when the colon at i
// opens one. The password may hold an "@"; the last one before the path counts.
func userInfo(text string, i int) (span, bool) {
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
	v := assignment{text: text, by: by}
	if quote := byteAt(text, at); quote == '"' || quote == '\'' || quote == '`' {
		v.quote, v.escapes = quote, backslashes(text, at)
		at++
	}
	if name == cookies {
		if by != ':' {
			return span{}, false
		}
		return cookieValue(text, at)
	}
	stop := at
	for stop < len(text) && stop < at+maxJudged && (v.goesOn(stop) || stop < at+minValue && name == strong && v.joins(stop)) {
		stop++
	}
	end := v.trim(at, stop)
	if !plausible(text[at:end], name, v.quote != 0, by, byteAt(text, end)) {
		return span{}, false
	}
	for stop < len(text) && (v.goesOn(stop) || name == strong && v.joins(stop)) { // it was judged by its front
		stop++
	}
	return span{start: at, end: v.trim(at, stop)}, true
}

// assignment is how a value stands in a text.
type assignment struct {
	text    string
	by      byte // what stands before it
	quote   byte // around it, 0 for none
	escapes int  // backslashes before the quote, in JSON inside of JSON
}

// goesOn reports whether the byte at i belongs to the value.
func (a assignment) goesOn(i int) bool {
	b := a.text[i]
	if a.quote == 0 {
		return !a.ends(b)
	}
	if b == a.quote {
		return backslashes(a.text, i)%(2*a.escapes+2) > a.escapes
	}
	_, masked := labelled(a.text, i)
	return b != '\n' && masked == 0
}

// ends reports what a value without quotes ends at. In a query "&" does.
func (a assignment) ends(b byte) bool {
	return b <= ' ' || b == '&' && a.by == '=' || strings.IndexByte(`"'`+"`,;|<>{}[]()\\", b) >= 0
}

// joins reports whether the mark at i, which mostly ends a value without quotes,
// is a part of it: no blank follows, and not the next pair of a list.
func (a assignment) joins(i int) bool {
	b := a.text[i]
	if a.quote != 0 || a.by == ' ' || b != ',' && b != ';' && b != '&' || a.ends(byteAt(a.text, i+1)) {
		return false
	}
	at := i + 1
	for at < len(a.text) && at < i+maxName && (isName(a.text[at]) || b == ';' && a.text[at] == ' ') {
		at++
	}
	next := byteAt(a.text, at)
	return next != '=' && next != ':'
}

// trim returns where a value from at to stop ends without what stands behind it
// and is no part of it: the end of a sentence, or what escapes the closing quote.
func (a assignment) trim(at, stop int) int {
	if a.quote != 0 {
		if byteAt(a.text, stop) != a.quote {
			return stop
		}
		return max(at, stop-a.escapes)
	}
	for stop > at && strings.IndexByte(".:?", a.text[stop-1]) >= 0 {
		stop--
	}
	return stop
}

// backslashes counts those before position i, as far as any use of them goes.
func backslashes(text string, i int) int {
	n := 0
	for n < maxEscapes && byteAt(text, i-n-1) == '\\' {
		n++
	}
	return n
}

// maxEscapes is for quotes in JSON, four times over.
const maxEscapes = 16
