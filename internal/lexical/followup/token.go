package followup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
)

// token is a word of a text, an identifier such as ORD-412, or a placeholder of a masked value
// such as [PHONE_1].
type token struct {
	raw, folded string
	identifier  bool // it contains a digit
	placeholder bool
	unspaced    bool // Chinese: all characters between two listed words
}

func (t *token) kind() wordKind { return lists().kinds[t.folded] }

// parts returns the parts of an identifier, folded.
func (t *token) parts() []string { return strings.FieldsFunc(t.folded, isJoiner) }

// isCode reports whether a part of an identifier, which has no digit, is written as a code: in upper case, and short.
func (t *token) isCode(part string) bool {
	const longest = 6
	return t.placeholder || len(part) <= longest && strings.Contains(t.raw, strings.ToUpper(part))
}

// hasFormOf reports whether two identifiers consist of the same sequence of letters, digits and
// other characters, and have about the same length. Placeholders must have the same kind.
func (t *token) hasFormOf(u token) bool {
	if t.placeholder || u.placeholder {
		kind, _, _ := strings.Cut(t.raw, "_")
		return t.placeholder && strings.HasPrefix(u.raw, kind+"_")
	}
	longer := len(t.folded) - len(u.folded)
	return -1 <= longer && longer <= 1 && formOf(t.folded) == formOf(u.folded)
}

// isDate reports whether an identifier may be a date or a time: 15, 15th, 5pm, 15/12, 10:30.
func (t *token) isDate() bool {
	digits := lengthOf(t.folded, unicode.IsDigit)
	switch formOf(t.folded) {
	case number:
		return digits <= 2
	case "0a", "0a0":
		return digits <= 2 && len(t.folded) <= digits+len("th00")
	case "0/0", "0/0/0", "0-0", "0-0-0", "0.0", "0.0.0", "0:0", "0:0a":
		return true
	}
	return false
}

// number is the form of a number.
const number = "0"

// formOf replaces each run of digits by 0, and of letters by a.
func formOf(text string) string {
	var form []rune
	for _, r := range text {
		switch {
		case unicode.IsDigit(r):
			r = '0'
		case unicode.IsLetter(r):
			r = 'a'
		}
		if n := len(form); n == 0 || form[n-1] != r || r != '0' && r != 'a' {
			form = append(form, r)
		}
	}
	return string(form)
}

// isJoiner reports whether a character may be inside an identifier.
func isJoiner(r rune) bool { return strings.ContainsRune("-_/.#:@+[]", r) }

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

func isWordRune(r rune) bool {
	return !isHan(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '\'' || r == '’')
}

// normalize composes the characters of a text, and simplifies Chinese ones.
func normalize(text string) string { return strings.Map(chinese.SimplifyRune, norm.NFC.String(text)) }

func readTokens(text string) (tokens []token) {
	text = normalize(text)
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch n := placeholderLength(text); {
		case n > 0:
			tokens = append(tokens, token{raw: text[:n], folded: strings.ToLower(text[:n]), identifier: true, placeholder: true})
			size = n
		case isHan(r):
			size = lengthOf(text, isHan)
			tokens = appendChinese(tokens, text[:size])
		case isWordRune(r):
			size = wordLength(text)
			raw := text[:size]
			tokens = append(tokens, token{raw: raw, folded: fold(raw), identifier: hasDigit(raw)})
		}
		text = text[size:]
	}
	return tokens
}

// placeholderLength returns the length of the placeholder at the beginning of a text, 0 if there is none.
func placeholderLength(text string) int {
	if text[0] != '[' {
		return 0
	}
	const longest = 40
	name, _, closed := strings.Cut(text[1:min(len(text), longest)], "]")
	letters, number, ok := strings.Cut(name, "_")
	isUpper := func(r rune) bool { return 'A' <= r && r <= 'Z' }
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	if !closed || !ok || letters == "" || number == "" || lengthOf(letters, isUpper) < len(letters) || lengthOf(number, isDigit) < len(number) {
		return 0
	}
	return len(name) + len("[]")
}

// wordLength returns the length of the word or identifier at the beginning of a text. Joiners
// belong to it if a letter or a digit follows.
func wordLength(text string) int {
	n := lengthOf(text, isWordRune)
	for {
		joiner, size := utf8.DecodeRuneInString(text[n:])
		if next, _ := utf8.DecodeRuneInString(text[n+size:]); size == 0 || !isJoiner(joiner) || !isWordRune(next) {
			return n
		}
		n += size + lengthOf(text[n+size:], isWordRune)
	}
}

// appendChinese appends the listed words of a run of Chinese characters, and what is between them.
func appendChinese(tokens []token, run string) []token {
	l := lists()
	begin := 0 // of the characters that are in no listed word
	flush := func(end int) {
		if begin < end {
			tokens = append(tokens, token{raw: run[begin:end], folded: run[begin:end], unspaced: true})
		}
	}
	for at := 0; at < len(run); {
		n := 0
		end := at
		for range l.longest {
			_, size := utf8.DecodeRuneInString(run[end:])
			end += size
			if l.kinds[run[at:end]] != other {
				n = end - at
			}
		}
		if n == 0 {
			_, size := utf8.DecodeRuneInString(run[at:])
			at += size
			continue
		}
		flush(at)
		tokens = append(tokens, token{raw: run[at : at+n], folded: run[at : at+n], unspaced: true})
		at += n
		begin = at
	}
	flush(len(run))
	return tokens
}

// fold returns a word in lower case and without accents.
func fold(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(strings.ToLower(word)))
}

// lengthOf returns the length of the beginning of a text that consists of such characters.
func lengthOf(text string, is func(rune) bool) int {
	if n := strings.IndexFunc(text, func(r rune) bool { return !is(r) }); n >= 0 {
		return n
	}
	return len(text)
}
