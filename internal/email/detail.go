package email

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caprouter/caprouter/internal/lexical/chinese"
)

const (
	maxSignatureLine = 160 // bytes of a line in a signature
	maxNameWords     = 5
	maxTitleWords    = 8
	maxChineseDetail = 20 // characters
	maxWord          = 24 // bytes of a word that is looked up
	maxHeaderName    = 32 // bytes of the name of a header, or the label of a contact
)

// isDetail reports whether a line may stand in a signature: a contact, or parts of
// names, job titles, companies and addresses that begin with capitals.
func isDetail(line string) bool {
	if len(line) > maxSignatureLine || looksLikeRequest(line) {
		return false
	}
	if isContact(line) {
		return true
	}
	for _, chunk := range splitChunks(line) {
		isJob := containsWord(chunk, jobWords) && len(strings.Fields(chunk)) <= maxTitleWords
		if !isJob && !isTitle(chunk) {
			return false
		}
	}
	return true
}

// isContact reports whether a line has an address, a telephone number or a web site.
func isContact(line string) bool {
	if strings.Contains(line, "@") || strings.Contains(line, "www.") || strings.Contains(line, "://") ||
		strings.Contains(line, "[EMAIL") || strings.Contains(line, "[PHONE") {
		return true
	}
	label := strings.IndexAny(cut(line, maxHeaderName), ":：")
	if label > 0 && contactLabels[fold(strings.Trim(line[:label], " ."))] {
		return true
	}
	digits := 0
	for _, r := range line {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case !strings.ContainsRune(" +-()./", r):
			return false
		}
	}
	return digits >= minPhoneDigits
}

// minPhoneDigits is the least number of digits of a line of digits that is a telephone number.
const minPhoneDigits = 7

// isTeam reports whether a line has a word of job titles, or is a contact.
func isTeam(line string) bool { return isContact(line) || containsWord(line, jobWords) }

// splitChunks splits a line of a signature: "Joana Prado | Customs Manager, ACME". It returns at least
// one chunk.
func splitChunks(line string) []string {
	line = strings.ReplaceAll(strings.ReplaceAll(line, " - ", ","), " – ", ",")
	chunks := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("|,•·;，、/", r) })
	kept := chunks[:0]
	for _, chunk := range chunks {
		if chunk = trimMarks(chunk); chunk != "" {
			kept = append(kept, chunk)
		}
	}
	if len(kept) == 0 {
		return []string{line}
	}
	return kept
}

// isTitle reports whether all words of a text begin with a capital, a digit or a symbol, except for
// particles such as "of", and whether it has a letter. No sentence ends inside it.
func isTitle(text string) bool {
	words := strings.Fields(text)
	letters := false
	for i, word := range words {
		if i+1 < len(words) && len(word) > maxAbbreviation && strings.ContainsAny(word[len(word)-1:], ".!") {
			return false
		}
		r := firstLetter(word)
		switch {
		case unicode.Is(unicode.Han, r):
			if utf8.RuneCountInString(word) > maxChineseDetail {
				return false
			}
			letters = true
		case unicode.IsUpper(r):
			letters = true
		case r != 0 && isDigit(word[0]), r == 0: // 12a, 4711, &
		case !particles[fold(cut(word, maxWord))]:
			return false
		}
	}
	return letters && len(words) <= maxTitleWords
}

// maxAbbreviation bounds the bytes of an abbreviation with its full stop: "Ltda."
const maxAbbreviation = len("Ltda.")

// firstLetter returns the first letter of a word, 0 if it has none.
func firstLetter(word string) rune {
	for _, r := range word {
		if unicode.IsLetter(r) {
			return r
		}
	}
	return 0
}

// isName reports whether a text may be the name of a person: a few capitalized words without digits.
func isName(text string) bool {
	return !strings.ContainsAny(text, "0123456789:") && len(strings.Fields(text)) <= maxNameWords && isTitle(text) && !looksLikeRequest(text)
}

// isFullName reports whether a text may be the name of a person with a family name.
func isFullName(text string) bool {
	if r, _ := utf8.DecodeRuneInString(text); unicode.Is(unicode.Han, r) {
		n := utf8.RuneCountInString(text)
		return 2 <= n && n <= 4 && isName(text)
	}
	return len(strings.Fields(text)) >= 2 && isName(text)
}

// hasInitial reports whether a name has an initial or a title: "J. Prado", "Dr. Prado".
func hasInitial(name string) bool {
	for word := range strings.FieldsSeq(name) {
		if r, size := utf8.DecodeRuneInString(word); unicode.IsUpper(r) && word[size:] == "." || honorifics[fold(cut(word, maxWord))] {
			return true
		}
	}
	return false
}

// isLowerName reports whether a text may be a name that was typed without capitals.
func isLowerName(text string) bool {
	if len(text) > maxSignatureLine || looksLikeRequest(text) {
		return false
	}
	words := strings.Fields(text)
	for _, word := range words {
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLower(r) && !strings.ContainsRune(".-'’,", r) }) {
			return false
		}
	}
	return 0 < len(words) && len(words) <= 3
}

// isCapitalized reports whether a line of a few words begins with a capital and is no request:
// "Moving fruit since 1954".
func isCapitalized(line string) bool {
	return unicode.IsUpper(firstLetter(cut(line, maxWord))) && len(line) <= maxSignatureLine &&
		len(strings.Fields(line)) <= maxTitleWords && !looksLikeRequest(line)
}

// looksLikeRequest reports whether a line has a question mark, a word of sentences such as "please"
// or "my", or begins with a common imperative.
func looksLikeRequest(line string) bool {
	if strings.ContainsAny(line, "?？¿") || containsAny(line, chineseRequests) {
		return true
	}
	first := true
	for word := range strings.FieldsSeq(line) {
		if word == "IT" || word == "No." || strings.ContainsAny(word, "@/") || strings.HasPrefix(word, "www.") {
			continue // a department, a number, or an address
		}
		word = fold(strings.TrimFunc(cut(word, maxWord), isSeparator))
		if sentenceWords[word] || first && imperatives[word] && !containsWord(line, jobWords) {
			return true
		}
		first = first && word == ""
	}
	return false
}

// isSeparator reports whether a character is not part of a word.
func isSeparator(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’'
}

// endsChineseSentence reports whether a text ends in a Chinese full stop, exclamation or question mark.
func endsChineseSentence(text string) bool {
	return strings.HasSuffix(text, "。") || strings.HasSuffix(text, "！") || strings.HasSuffix(text, "？")
}

func endsSentence(line string) bool {
	return strings.ContainsAny(line[max(0, len(line)-1):], ".!?") || endsChineseSentence(line)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isItem reports whether a line begins with a mark and white space, like an item of a list.
func isItem(line string) bool {
	mark, _, ok := strings.Cut(strings.TrimLeft(line, " \t"), " ")
	return ok && (mark == "-" || mark == "–" || mark == "—" || mark == "*" || mark == "•")
}

// isRule reports whether a line consists of marks: "____".
func isRule(line string) bool { return line != "" && strings.Trim(line, "-_=*~–— ") == "" }

// containsWord reports whether a text has one of the words; Chinese words may be anywhere in it.
func containsWord(text string, words map[string]bool) bool {
	for word := range strings.FieldsFuncSeq(text, isSeparator) {
		if words[fold(cut(word, maxWord))] {
			return true
		}
		if r, _ := utf8.DecodeRuneInString(word); unicode.Is(unicode.Han, r) && containsAny(word, chineseJobs) {
			return true
		}
	}
	return false
}

func containsAny(text string, list []string) bool {
	text = simplify(text)
	for _, s := range list {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// simplify returns a text in simplified Chinese characters.
func simplify(text string) string { return strings.Map(chinese.SimplifyRune, text) }

func hasAnyPrefix(text string, list []string) bool {
	for _, s := range list {
		if strings.HasPrefix(text, s) {
			return true
		}
	}
	return false
}

func trimSpaces(text string) string { return strings.Trim(text, " \t") }

// trimMarks removes white space and punctuation around a name.
func trimMarks(text string) string { return strings.Trim(text, " \t,.!;:-–—~*_，。！；：") }

// cut returns at most limit bytes of a text, up to a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// fold returns a text in lower case, without the accents of Portuguese and Spanish, and in
// simplified Chinese characters.
func fold(text string) string { return string(appendFolded(make([]byte, 0, len(text)), text)) }

// appendFolded appends a folded text.
func appendFolded(b []byte, text string) []byte {
	for _, r := range text {
		switch r = chinese.SimplifyRune(unicode.ToLower(r)); r {
		case 'á', 'à', 'â', 'ã', 'ä':
			r = 'a'
		case 'é', 'ê', 'è':
			r = 'e'
		case 'í':
			r = 'i'
		case 'ó', 'ô', 'õ', 'ö':
			r = 'o'
		case 'ú', 'ü':
			r = 'u'
		case 'ç':
			r = 'c'
		case 'ñ':
			r = 'n'
		case '’':
			r = '\''
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}
