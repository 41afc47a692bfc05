// Package token splits texts into words, in the form in which they are compared.
//
//	w := token.NewScanner()
//	for w.Reset("Reviewing the APIs"); w.Next(); {
//		use(w.Word)                                // reviewing, the, apis
//		use(token.Stem(token.FoldNumber(w.Word)))  // review, the, api
//	}
//
// scanner.go splits a text and folds its words; stem.go reduces words to stems. Parts of a text
// that are not read are found by embedded.go: code blocks, JSON objects, HTML comments. labels.go
// recognizes names in the spelling of programs.
package token

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
)

// Scanner is a tokenizer: it splits a text into words and folds each: lower case, no accents,
// compatibility forms (ﬁ, Ｐｙ) resolved. It is reused for many texts, so that it
// does not allocate after its buffers have grown.
type Scanner struct {
	// Word is the current word, folded. It is valid, and may be changed, until the next call.
	Word []byte

	text  string
	start int // of the word, or of its run of ideographs or kana
	pos   int

	// Inside a fenced block: the info line is read up to fenceInfoEnd, and
	// scanning continues at fenceEnd.
	fenceInfoEnd, fenceEnd int

	embedded Embedded
	labelScanner

	buf         []byte // backs Word
	decomposed  []byte // the word being folded
	runBuf      []byte // backs run
	run         []byte // rest of a run of ideographs or kana
	pairEmitted bool   // the run has produced a pair that contains its previous character
	afterWord   bool   // the run has produced a known word that ends with its previous character
	fold        cases.Caser
}

// NewScanner returns a scanner without a text.
func NewScanner() Scanner { return Scanner{fold: cases.Fold()} }

// Reset makes the scanner read a text from its beginning.
func (w *Scanner) Reset(text string) {
	w.text, w.pos, w.fenceInfoEnd, w.fenceEnd = text, 0, -1, 0
	w.run = w.run[:0]
	w.embedded = NewEmbedded(text)
	w.Label, w.joinedEnd = nil, 0
}

// Next reads one word, and reports whether there was one.
func (w *Scanner) Next() bool {
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
			w.pos = max(w.pos+1, w.embedded.EndAt(w.pos))
		case c == '[':
			w.pos += max(1, placeholderLength(w.text[w.pos:]))
		case c < utf8.RuneSelf && !IsASCIIWord(c):
			w.pos++
		case c < utf8.RuneSelf:
			w.readWord()
			return true
		default:
			r, size := utf8.DecodeRuneInString(w.text[w.pos:])
			switch {
			case IsUnspaced(r):
				w.readRun()
			case IsWordRune(r):
				w.readWord()
				if len(w.Word) > 0 { // a lone accent folds to nothing
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
func (w *Scanner) skipBackticks() {
	if w.fenceInfoEnd < 0 {
		if f, ok := FenceAt(w.text, w.pos); ok {
			w.pos, w.fenceInfoEnd, w.fenceEnd = f.infoStart, f.bodyStart, f.End
			return
		}
	}
	w.pos += max(1, CountBackticks(w.text, w.pos))
}

// readWord reads the word at pos into w.Word.
func (w *Scanner) readWord() {
	start, ascii := w.pos, true
	w.start = start
	for w.pos < len(w.text) {
		if c := w.text[w.pos]; c < utf8.RuneSelf {
			if !IsASCIIWord(c) {
				break
			}
			w.pos++
			continue
		}
		r, size := utf8.DecodeRuneInString(w.text[w.pos:])
		if IsUnspaced(r) || !IsWordRune(r) && !unicode.Is(unicode.Cf, r) {
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
		inner = w.Labels != nil && hasInnerCapital(raw)
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
		w.Label = nil
		if w.Labels != nil && (inner || w.pos < len(w.text) && w.text[w.pos] == '_') {
			w.lookUpLabel(start)
		}
	}
	if len(raw) == 1 {
		w.appendLanguageSign()
	}
	w.Word = w.buf
}

// appendLanguageSign keeps C, C++ and C# apart: the sign after a single letter
// is part of the word.
func (w *Scanner) appendLanguageSign() {
	rest := w.text[w.pos:]
	sign := 0
	switch {
	case strings.HasPrefix(rest, "++"):
		sign = 2
	case strings.HasPrefix(rest, "#"):
		sign = 1
	}
	if sign == 0 || len(rest) > sign && IsASCIIWord(rest[sign]) {
		return
	}
	w.buf = append(w.buf, rest[:sign]...)
	w.pos += sign
}

// foldUnicode writes the folded form of raw to buf. Decomposing one character
// at a time leaves combining marks unsorted, which does not matter because they
// are dropped, and does not allocate, unlike norm.Form.Append.
func (w *Scanner) foldUnicode(raw string) {
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
func (w *Scanner) appendRune(character string) {
	if r, _ := utf8.DecodeRuneInString(character); !isDropped(r) {
		w.decomposed = append(w.decomposed, character...)
	}
}

// readRun reads a run of ideographs or kana; nextInRun splits it into words.
func (w *Scanner) readRun() {
	start := w.pos
	w.start = start
	for w.pos < len(w.text) {
		r, size := utf8.DecodeRuneInString(w.text[w.pos:])
		if !IsUnspaced(r) {
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
	w.Label = nil
}

// nextInRun takes the next word from the run: one that is known, else a pair of characters, or
// a single character between particles and known words. A character behind a known word is
// a word of its own as well, because a registry may contain the two as one word: 验证 and 码
// are found in 验证码收不到 as in 验证码.
func (w *Scanner) nextInRun() bool {
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
func (w *Scanner) takeFromRun(size, skip int) {
	w.Word = append(w.buf[:0], w.run[:size]...)
	w.buf, w.run = w.Word, w.run[skip:]
}

// IsASCIIWord reports whether c is part of a word. The underscore is not,
// because labels and identifiers consist of several words.
func IsASCIIWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// IsWordRune reports whether r is part of a word: a letter, a digit or a mark.
func IsWordRune(r rune) bool {
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

// IsUnspaced reports whether r belongs to a script that does not put spaces
// between words.
func IsUnspaced(r rune) bool {
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

// TextFrom returns the text from a position to the end of the current word, or only this word
// if the text between them is long or on several lines, or begins in another part of the text.
func (w *Scanner) TextFrom(start int) string {
	if start > w.start || w.pos-start > maxSynonymText || strings.Contains(w.text[start:w.pos], "\n") {
		start = w.start
	}
	return w.text[start:w.pos]
}

// IsWrittenAsName reports whether the current word is written as a name: in upper case next to
// a word that is not, joined by an underscore, or as the only word. A single vowel in upper
// case is a word.
func (w *Scanner) IsWrittenAsName() bool {
	before, after := w.text[:w.start], w.text[w.pos:]
	if strings.HasSuffix(before, "_") || strings.HasPrefix(after, "_") {
		return true
	}
	isSeparator := func(r rune) bool { return !IsWordRune(r) }
	before, after = strings.TrimRightFunc(before, isSeparator), strings.TrimLeftFunc(after, isSeparator)
	if before == "" && after == "" {
		return true
	}
	name := w.text[w.start:w.pos]
	if strings.ContainsFunc(name, isNoCapital) || len(w.Word) == 1 && strings.IndexByte("aeiouy", w.Word[0]) >= 0 {
		return false
	}
	before = before[strings.LastIndexFunc(before, isSeparator)+1:]
	if end := strings.IndexFunc(after, isSeparator); end >= 0 {
		after = after[:end]
	}
	return strings.ContainsFunc(before, isNoCapital) || strings.ContainsFunc(after, isNoCapital)
}

// isNoCapital reports whether r is a letter, and not in upper case.
func isNoCapital(r rune) bool { return unicode.IsLetter(r) && !unicode.IsUpper(r) }

// Start returns the position of the current word in the text or, if it is part of a run of
// ideographs or kana, of the run.
func (w *Scanner) Start() int { return w.start }

// End returns the position after the current word.
func (w *Scanner) End() int { return w.pos }
