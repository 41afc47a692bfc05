package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// findEmails appends the e-mail addresses: a local part and a domain of two or
// more labels. Addresses of repositories (git@host:…) and of users in URLs are
// not among them; the latter are secrets.
func findEmails(text string, found []span) []span {
	from := 0 // what is before belongs to an address already
	for i := strings.IndexByte(text, '@'); i >= 0; {
		end := domainEnd(text, i+1)
		start := i
		if end > 0 {
			start = localStart(text, from, i)
		}
		next := i + 1
		if start < i && !isRepository(text, start, i, end) && !inURL(text, from, start) {
			found = append(found, span{start: start, end: end})
			from, next = end, end
		} else {
			from = next
		}
		more := strings.IndexByte(text[next:], '@')
		if more < 0 {
			break
		}
		i = next + more
	}
	return found
}

// localStart returns where the local part before the "@" at i starts, i when
// there is none. It does not go back beyond from, so that no byte is read twice.
func localStart(text string, from, i int) int {
	if byteAt(text, i-1) == '"' { // "john smith"@example.com
		if open := strings.LastIndexByte(text[from:i-1], '"'); open >= 0 && i-open-from <= 66 {
			return from + open
		}
	}
	start := back(text, from, i, false)
	if start == i {
		start = back(text, from, i, true)
	}
	for start < i && strings.IndexByte(".-'+", text[start]) >= 0 {
		start++
	}
	return start
}

// back goes back over the characters of a local part. Scripts that set no blank
// between words count only if unspaced: else the words before an address would
// be taken for a part of it.
func back(text string, from, i int, unspaced bool) int {
	for i > from {
		if b := text[i-1]; b < utf8.RuneSelf {
			if !isWord(b) && strings.IndexByte(".%+-'", b) < 0 {
				break
			}
			i--
			continue
		}
		r, n := utf8.DecodeLastRuneInString(text[from:i])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) || !unspaced && isUnspaced(r) {
			break
		}
		i -= n
	}
	return i
}

func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer)
}

// domainEnd returns where the domain that starts at i ends, 0 when it is none.
// Its last label starts with a letter and has two characters: "bob@example.c",
// "lodash@4.17" and "user@localhost" are no addresses.
func domainEnd(text string, i int) int {
	for first, end := true, 0; ; first = false {
		stop := labelEnd(text, i)
		if stop == i {
			return end
		}
		last := stop
		for text[last-1] == '-' && last > i+1 {
			last--
		}
		if b := text[i]; !first && last-i >= 2 && (isLetter(b) || b >= utf8.RuneSelf) {
			end = last
		}
		if byteAt(text, stop) != '.' {
			return end
		}
		i = stop + 1
	}
}

// labelEnd returns where the label of a domain that starts at i ends. Where it
// starts in a script that sets blanks, the words of one that does not end it.
func labelEnd(text string, i int) int {
	start, unspaced := i, false
	for i < len(text) {
		if b := text[i]; b < utf8.RuneSelf {
			if !isDigit(b) && !isLetter(b) && b != '-' {
				break
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if i == start {
			unspaced = isUnspaced(r)
		}
		if !unicode.IsLetter(r) && !unicode.IsMark(r) || isUnspaced(r) && !unspaced {
			break
		}
		i += n
	}
	return i
}

// isRepository reports an address of git: git@host:path.
func isRepository(text string, start, at, end int) bool {
	return text[start:at] == "git" && byteAt(text, end) == ':'
}

// inURL reports whether what starts at i is the password of a URL:
// scheme://user:password@host.
func inURL(text string, from, i int) bool {
	if byteAt(text, i-1) != ':' {
		return false
	}
	for i--; i > from; i-- {
		switch b := text[i-1]; {
		case b == '/':
			return i >= 3 && text[i-3:i] == "://"
		case b <= ' ':
			return false
		}
	}
	return false
}
