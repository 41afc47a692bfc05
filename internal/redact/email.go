package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// findEmails appends e-mail addresses: a local part and a domain with at least
// two labels. It excludes repository addresses (git@host:…) and URLs with
// users, which are secrets.
func findEmails(text string, found []span) []span {
	from := 0 // end of the previous address
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

// localStart returns the start of the local part before the "@" at i, or i if
// there is none. It stops at from, so that no byte is read twice.
func localStart(text string, from, i int) int {
	if byteAt(text, i-1) == '"' { // "john smith"@example.com
		if open := strings.LastIndexByte(text[from:i-1], '"'); open >= 0 && i-open-from <= 66 {
			return from + open
		}
	}
	start := scanLocalBack(text, from, i, false)
	if start == i {
		start = scanLocalBack(text, from, i, true)
	}
	for start < i && strings.IndexByte(".-'+", text[start]) >= 0 {
		start++
	}
	return start
}

// scanLocalBack scans back over the local part. Letters of scripts without
// spaces are included only if unspaced is set, because otherwise preceding
// words would become part of the address.
func scanLocalBack(text string, from, i int, unspaced bool) int {
	for i > from {
		if b := text[i-1]; b < utf8.RuneSelf {
			if !isWordOrDigit(b) && strings.IndexByte(".%+-'", b) < 0 {
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

// domainEnd returns the end of the domain that starts at i, or 0. The last
// label starts with a letter and has at least two characters: "bob@example.c",
// "lodash@4.17" and "user@localhost" are not addresses.
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

// labelEnd returns the end of the domain label that starts at i. A label in a
// script with spaces ends at a character of a script without spaces.
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

// isRepository reports whether the address is a git remote: git@host:path.
func isRepository(text string, start, at, end int) bool {
	return text[start:at] == "git" && byteAt(text, end) == ':'
}

// inURL reports whether the text at i is the password of a URL:
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
