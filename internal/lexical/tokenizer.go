package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// tokenizer reads a text word by word, each folded: lower case, without accents,
// compatibility forms (ﬁ, Ｐｙ) resolved. A reader is reused from text to text,
// so that reading allocates nothing once its buffers have grown.
//
//	for w.reset(text); w.next(); {
//		use(w.word) // valid, and free to be changed, until the next call
//	}
type tokenizer struct {
	text string
	pos  int
	word []byte

	// Inside a fence: its info line is read up to infoEnd, and reading goes on
	// at resume.
	fenceInfoEnd, fenceEnd int

	embedded embeddedContent
	labelScanner

	buf         []byte // backs word
	decomposed  []byte // a word while it is being folded
	runBuf      []byte // backs run
	run         []byte // what is left of a run of ideographs or kana
	pairEmitted bool   // the run has given a pair; its last character is spent
	fold        cases.Caser
}

func newTokenizer() tokenizer { return tokenizer{fold: cases.Fold()} }

func (w *tokenizer) reset(text string) {
	w.text, w.pos, w.fenceInfoEnd, w.fenceEnd = text, 0, -1, 0
	w.run = w.run[:0]
	w.embedded.reset(text)
	w.current, w.joinedEnd = nil, 0
}

// next reads one word and reports whether there was one.
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
				if len(w.word) > 0 { // nothing is left of a lone accent
					return true
				}
			default:
				w.pos += size
			}
		}
	}
}

// placeholderLength is the length of the placeholder the text starts with, 0 when it
// starts with none: an upper-case word, an underscore and a number in brackets,
// as in [EMAIL_1]. It stands for something that is nobody's business, so it is
// no word: it must not speak for an intent that is about e-mail.
func placeholderLength(text string) int {
	letters := 1 // behind the bracket
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

// skipBackticks passes over backticks or, if a fenced block starts here, arranges
// for the block's body to be left out. The info line ("python") is read.
func (w *tokenizer) skipBackticks() {
	if w.fenceInfoEnd < 0 {
		if f, ok := fenceAt(w.text, w.pos); ok {
			w.pos, w.fenceInfoEnd, w.fenceEnd = f.infoStart, f.bodyStart, f.end
			return
		}
	}
	w.pos += max(1, countBackticks(w.text, w.pos))
}

// readWord reads the word that starts at pos into word.
func (w *tokenizer) readWord() {
	start, ascii := w.pos, true
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
	var inner bool // it may have a capital inside
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

// appendLanguageSign keeps C, C++ and C# apart: the sign behind a single letter is
// part of the word.
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

// foldUnicode writes the folded form of raw to buf. Decomposing character by
// character leaves marks in the order they come, which does not matter where
// they are dropped, and costs nothing on the heap, unlike norm.Form.Append.
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
	if need := 3*len(w.decomposed) + utf8.UTFMax; cap(w.buf) < need { // folding at most triples
		w.buf = make([]byte, need)
	}
	n, _, err := w.fold.Transform(w.buf[:cap(w.buf)], w.decomposed, true)
	if err != nil {
		n = copy(w.buf[:cap(w.buf)], w.decomposed)
	}
	w.buf = w.buf[:n]
}

// appendRune appends one character to the word being folded, unless it is dropped.
func (w *tokenizer) appendRune(character string) {
	if r, _ := utf8.DecodeRuneInString(character); !isDropped(r) {
		w.decomposed = append(w.decomposed, character...)
	}
}

// readRun reads a run of ideographs or kana; nextOfRun cuts it into words.
func (w *tokenizer) readRun() {
	start := w.pos
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
	w.run = w.runBuf
	w.pairEmitted = false
	w.current = nil
}

// nextInRun takes the next pair of characters off the run, or a character that
// stands alone between particles.
func (w *tokenizer) nextInRun() bool {
	for len(w.run) > 0 {
		first, n := utf8.DecodeRune(w.run)
		second, m := utf8.DecodeRune(w.run[n:])
		whole := w.run
		w.run = w.run[n:]
		switch {
		case isParticle(first):
			w.pairEmitted = false
		case m > 0 && !isParticle(second):
			w.pairEmitted = true
			w.word = append(w.buf[:0], whole[:n+m]...)
			w.buf = w.word
			return true
		case !w.pairEmitted:
			w.word = append(w.buf[:0], whole[:n]...)
			w.buf = w.word
			return true
		}
	}
	return false
}

// isASCIIWord reports whether c is part of a word. The underscore is not: labels
// and identifiers are made of several words.
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

// isDropped reports whether folding leaves r out: accents, vowel points,
// lengthening and invisible characters. Marks of scripts in which they carry
// sounds of their own (Devanagari, Thai) stay.
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

// isUnspaced reports whether r belongs to a script that does not space its words.
func isUnspaced(r rune) bool {
	if r < 0x3005 {
		return false
	}
	switch r {
	case 'ー', 'ｰ', 'ﾞ', 'ﾟ': // they belong to kana, but not to one script
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// isParticle reports whether r only holds a Chinese sentence together: politeness,
// pronouns, pointers, question and mood.
func isParticle(r rune) bool {
	return strings.ContainsRune("的了吗呢吧请我你您他她们这那把", r)
}
