package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
)

// tokenizer splits a text into words and folds each: lower case, no accents,
// compatibility forms (ﬁ, Ｐｙ) resolved. It is reused for many texts, so that it
// does not allocate after its buffers have grown.
//
//	for w.reset(text); w.next(); {
//		use(w.word) // valid, and may be changed, until the next call
//	}
type tokenizer struct {
	text  string
	start int // of the word, or of its run of ideographs or kana
	pos   int
	word  []byte

	// Inside a fenced block: the info line is read up to fenceInfoEnd, and
	// scanning continues at fenceEnd.
	fenceInfoEnd, fenceEnd int

	embedded embeddedContent
	labelScanner

	buf         []byte // backs word
	decomposed  []byte // the word being folded
	runBuf      []byte // backs run
	run         []byte // rest of a run of ideographs or kana
	pairEmitted bool   // the run has produced a pair that contains its previous character
	afterWord   bool   // the run has produced a known word that ends with its previous character
	fold        cases.Caser
}

func newTokenizer() tokenizer { return tokenizer{fold: cases.Fold()} }

func (w *tokenizer) reset(text string) {
	w.text, w.pos, w.fenceInfoEnd, w.fenceEnd = text, 0, -1, 0
	w.run = w.run[:0]
	w.embedded.reset(text)
	w.current, w.joinedEnd = nil, 0
}

// next reads one word, and reports whether there was one.
func (w *tokenizer) next() bool {
	for {
		if len(w.run) > 0 && w.nextInRun() {
			return true
		}
		if w.pos >= len(w.text) {
			return false
		}
		if w.pos == w.fenceInfoEnd {
			w.pos, w.fenceInfoEnd = w.fenceEnd, -1
			continue
		}
		c := w.text[w.pos]
		switch {
		case c == '`':
			w.skipBackticks()
		case (c == '{' || c == '<') && w.fenceInfoEnd < 0:
			w.pos = max(w.pos+1, w.embedded.endAt(w.pos))
		case c == '[':
			w.pos += max(1, placeholderLength(w.text[w.pos:]))
		case c < utf8.RuneSelf && !isASCIIWord(c):
			w.pos++
		case c < utf8.RuneSelf:
			w.readWord()
			return true
		default:
			r, size := utf8.DecodeRuneInString(w.text[w.pos:])
			switch {
			case isUnspaced(r):
				w.readRun()
			case isWordRune(r):
				w.readWord()
				if len(w.word) > 0 { // a lone accent folds to nothing
					return true
				}
			default:
				w.pos += size
			}
		}
	}
}

// placeholderLength returns the length of the placeholder at the start of text,
// or 0 if there is none. A placeholder is an upper-case word, an underscore and
// a number in brackets, for example [EMAIL_1]. It replaces a masked value, so
// it is not a word: it must not count as evidence for an intent about e-mail.
func placeholderLength(text string) int {
	letters := 1 // after the bracket
	for letters < len(text) && ('A' <= text[letters] && text[letters] <= 'Z') {
		letters++
	}
	if letters == 1 || letters == len(text) || text[letters] != '_' {
		return 0
	}
	digits := letters + 1
	for digits < len(text) && '0' <= text[digits] && text[digits] <= '9' {
		digits++
	}
	if digits == letters+1 || digits == len(text) || text[digits] != ']' {
		return 0
	}
	return digits + 1
}

// skipBackticks skips backticks. If they open a fenced block, only its info
// line ("python") is read and the body is skipped.
func (w *tokenizer) skipBackticks() {
	if w.fenceInfoEnd < 0 {
		if f, ok := fenceAt(w.text, w.pos); ok {
			w.pos, w.fenceInfoEnd, w.fenceEnd = f.infoStart, f.bodyStart, f.end
			return
		}
	}
	w.pos += max(1, countBackticks(w.text, w.pos))
}

// readWord reads the word at pos into w.word.
func (w *tokenizer) readWord() {
	start, ascii := w.pos, true
	w.start = start
	for w.pos < len(w.text) {
		if c := w.text[w.pos]; c < utf8.RuneSelf {
			if !isASCIIWord(c) {
				break
			}
			w.pos++
			continue
		}
		r, size := utf8.DecodeRuneInString(w.text[w.pos:])
		if isUnspaced(r) || !isWordRune(r) && !unicode.Is(unicode.Cf, r) {
			break
		}
		ascii = false
		w.pos += size
	}
	raw := w.text[start:w.pos]
	w.buf = w.buf[:0]
	var inner bool // it may contain an inner capital
	if !ascii {
		w.foldUnicode(raw)
		inner = w.labels != nil && hasInnerCapital(raw)
	} else {
		changed := byte(0)
		w.buf = append(w.buf, lowerASCII(raw[0]))
		for i := 1; i < len(raw); i++ {
			c := lowerASCII(raw[i])
			changed |= c ^ raw[i]
			w.buf = append(w.buf, c)
		}
		inner = changed != 0
	}
	if start >= w.joinedEnd {
		w.current = nil
		if w.labels != nil && (inner || w.pos < len(w.text) && w.text[w.pos] == '_') {
			w.lookUpLabel(start)
		}
	}
	if len(raw) == 1 {
		w.appendLanguageSign()
	}
	w.word = w.buf
}

// appendLanguageSign keeps C, C++ and C# apart: the sign after a single letter
// is part of the word.
func (w *tokenizer) appendLanguageSign() {
	rest := w.text[w.pos:]
	sign := 0
	switch {
	case strings.HasPrefix(rest, "++"):
		sign = 2
	case strings.HasPrefix(rest, "#"):
		sign = 1
	}
	if sign == 0 || len(rest) > sign && isASCIIWord(rest[sign]) {
		return
	}
	w.buf = append(w.buf, rest[:sign]...)
	w.pos += sign
}

// foldUnicode writes the folded form of raw to buf. Decomposing one character
// at a time leaves combining marks unsorted, which does not matter because they
// are dropped, and does not allocate, unlike norm.Form.Append.
func (w *tokenizer) foldUnicode(raw string) {
	w.decomposed = w.decomposed[:0]
	for len(raw) > 0 {
		props := norm.NFKD.PropertiesString(raw)
		size := max(1, props.Size())
		parts := props.Decomposition()
		if parts == nil {
			w.appendRune(raw[:size])
		}
		for len(parts) > 0 {
			_, n := utf8.DecodeRune(parts)
			w.appendRune(string(parts[:n]))
			parts = parts[n:]
		}
		raw = raw[size:]
	}
	if need := 3*len(w.decomposed) + utf8.UTFMax; cap(w.buf) < need { // folding at most triples the length
		w.buf = make([]byte, need)
	}
	n, _, err := w.fold.Transform(w.buf[:cap(w.buf)], w.decomposed, true)
	if err != nil {
		n = copy(w.buf[:cap(w.buf)], w.decomposed)
	}
	w.buf = w.buf[:n]
}

// appendRune appends one character to the word being folded, unless folding
// drops it.
func (w *tokenizer) appendRune(character string) {
	if r, _ := utf8.DecodeRuneInString(character); !isDropped(r) {
		w.decomposed = append(w.decomposed, character...)
	}
}

// readRun reads a run of ideographs or kana; nextInRun splits it into words.
func (w *tokenizer) readRun() {
	start := w.pos
	w.start = start
	for w.pos < len(w.text) {
		r, size := utf8.DecodeRuneInString(w.text[w.pos:])
		if !isUnspaced(r) {
			break
		}
		w.pos += size
	}
	w.runBuf = append(w.runBuf[:0], w.text[start:w.pos]...)
	if !norm.NFKC.IsNormal(w.runBuf) { // half-width kana, compatibility ideographs
		w.runBuf = norm.NFKC.AppendString(w.runBuf[:0], w.text[start:w.pos])
	}
	chinese.Simplify(w.runBuf)
	w.run = w.runBuf
	w.pairEmitted, w.afterWord = false, false
	w.current = nil
}

// nextInRun takes the next word from the run: one that is known, else a pair of characters, or
// a single character between particles and known words. A character behind a known word is
// a word of its own as well, because a registry may contain the two as one word: 验证 and 码
// are found in 验证码收不到 as in 验证码.
func (w *tokenizer) nextInRun() bool {
	for len(w.run) > 0 {
		if n := chinese.FirstWord(w.run); n > 0 {
			w.takeFromRun(n, n)
			w.pairEmitted, w.afterWord = false, true
			return true
		}
		first, n := utf8.DecodeRune(w.run)
		second, m := utf8.DecodeRune(w.run[n:])
		afterWord := w.afterWord
		w.afterWord = false
		switch {
		case isParticle(first):
			w.pairEmitted = false
		case m > 0 && !isParticle(second) && chinese.FirstWord(w.run[n:]) == 0:
			if afterWord {
				w.takeFromRun(n, 0)
				return true
			}
			w.takeFromRun(n+m, n)
			w.pairEmitted = true
			return true
		case !w.pairEmitted:
			w.takeFromRun(n, n)
			return true
		}
		w.run = w.run[n:]
	}
	return false
}

// takeFromRun makes the first size bytes of the run the current word, and drops the first skip
// bytes of it.
func (w *tokenizer) takeFromRun(size, skip int) {
	w.word = append(w.buf[:0], w.run[:size]...)
	w.buf, w.run = w.word, w.run[skip:]
}

// isASCIIWord reports whether c is part of a word. The underscore is not,
// because labels and identifiers consist of several words.
func isASCIIWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// isDropped reports whether folding removes r: accents, vowel points,
// lengthening marks and invisible characters. Marks that carry sounds of their
// own (Devanagari, Thai) stay.
func isDropped(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case 0x0300 <= r && r <= 0x036F, // Latin, Greek, Cyrillic accents
		0x0591 <= r && r <= 0x05C7,                           // Hebrew points
		0x064B <= r && r <= 0x065F, r == 0x0670, r == 0x0640, // Arabic points, tatweel
		0xFE00 <= r && r <= 0xFE0F: // variation selectors
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// isUnspaced reports whether r belongs to a script that does not put spaces
// between words.
func isUnspaced(r rune) bool {
	if r < 0x3005 {
		return false
	}
	switch r {
	case 'ー', 'ｰ', 'ﾞ', 'ﾟ': // kana marks that belong to no single script
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// isParticle reports whether r is a Chinese function word: politeness, pronouns,
// demonstratives, prepositions, question and mood particles.
func isParticle(r rune) bool {
	return strings.ContainsRune("的了吗呢吧啊呀嘛啦请我你您他她们这那把是也很在和与", r)
}

// maxSynonymText bounds the text of a synonym. A longer phrase has something else between its words.
const maxSynonymText = 48

// textFrom returns the text from a position to the end of the current word, or only this word
// if the text between them is long or on several lines, or begins in another part of the text.
func (w *tokenizer) textFrom(start int) string {
	if start > w.start || w.pos-start > maxSynonymText || strings.Contains(w.text[start:w.pos], "\n") {
		start = w.start
	}
	return w.text[start:w.pos]
}
