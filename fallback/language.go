package fallback

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/caprouter/caprouter/contract"
)

// answerLanguage is the language of an answer: the tag that the model gets, "" for that
// of the request, and our own sentences, in English if there are no others.
type answerLanguage struct {
	tag     string
	texts   *localizedText
	refusal *refusalText
}

// auto is the value of the registry's language that leaves the choice to the request.
const auto = "auto"

// LanguageSource is what determines the language of an answer: the configured language, or
// else the caller's locale, or else the prompt, or else the latest turn of the user that
// shows a language.
type LanguageSource struct {
	Configured string // fallback.language of the registry
	Locale     string // BCP 47; "" = unknown
	Prompt     string
	Turns      []contract.Turn // before the prompt, oldest first
}

func chooseLanguage(s *LanguageSource) answerLanguage {
	tag := ""
	if s.Configured != auto {
		tag = parseLanguageTag(s.Configured)
	}
	if tag == "" {
		tag = parseLanguageTag(s.Locale)
	}
	if tag == "" {
		tag = DetectLanguage(s.Prompt)
	}
	for i := len(s.Turns) - 1; i >= 0 && tag == ""; i-- {
		if s.Turns[i].Role == "user" {
			tag = DetectLanguage(s.Turns[i].Content)
		}
	}
	primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
	all := localizedTexts()
	if all[primary] == nil {
		primary = "en"
	}
	return answerLanguage{tag, all[primary], refusalTexts()[primary]}
}

// LanguageTag returns the language for a text of a model as a BCP 47 tag, "" for that of
// the request.
func LanguageTag(s *LanguageSource) string { return chooseLanguage(s).tag }

// parseLanguageTag returns the locale as a BCP 47 tag, or "" if it names no language. POSIX
// locales (pt_BR.UTF-8) are accepted too.
func parseLanguageTag(locale string) string {
	locale, _, _ = strings.Cut(locale, ".")
	locale, _, _ = strings.Cut(locale, "@")
	tag := strings.ReplaceAll(locale, "_", "-")
	for i, sub := range strings.Split(tag, "-") {
		switch {
		case strings.ContainsFunc(sub, func(r rune) bool { return !isASCIILetter(r) && (i == 0 || r < '0' || r > '9') }):
			return ""
		case i == 0 && (len(sub) < 2 || len(sub) > 3), sub == "", len(sub) > 8:
			return ""
		}
	}
	switch strings.ToLower(tag) {
	case "und", "mul", "mis", "zxx": // undetermined, several, uncoded, none
		return ""
	}
	return tag
}

func isASCIILetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// languageMarkers are frequent words of a language, and letters and endings that few
// similar languages have. Languages without localized texts are included, so that
// they are not mistaken for one that has them.
type languageMarkers struct {
	words   string
	letters string
	endings []string
	// pieces are parts of words, to break ties; a space is an end of the word.
	pieces []string
	// imperative is the usual end of a first word that is a request: revise, revisa.
	imperative string

	frequent map[string]bool // the words
}

// indexedMarkers are allLanguageMarkers with the sets of their words.
var indexedMarkers = sync.OnceValue(func() map[string]languageMarkers {
	all := allLanguageMarkers()
	for tag, t := range all {
		t.frequent = map[string]bool{}
		for w := range strings.FieldsSeq(t.words) {
			t.frequent[w] = true
		}
		all[tag] = t
	}
	return all
})

func allLanguageMarkers() map[string]languageMarkers {
	return map[string]languageMarkers{
		"pt": {
			words: "a ao aos as com como da das de do dos e é ela ele em esse essa esta este está eu foi há isso isto já mais mas me meu minha na não nas no nos o os ou " +
				"para pela pelo por porque posso qual quais quando quanto que quem quero são se sem seu sua ser tem tenho um uma você vocês " +
				"agora algo antes estou gostaria meus minhas ate até cada depois deste desta diga dois duas embora isto mesmo muito neste nesta nossa nosso onde outra outro pelos pelas pode podem pq qualquer sempre só sobre também tem toda todo tudo vai vcs vc veio " +
				"ajuda ajude crie escreva explique faça faz favor gere liste mostre obrigado obrigada oi olá preciso resuma revise traduza conte fazer criar escrever mostrar ontem hoje amanhã bom dia código",
			letters: "ãõ", endings: []string{"ção", "ções", "mente", "inho"}, imperative: "e",
			pieces: []string{"nh", "lh", "ss", "ç", "ei", "ou", "ã", "õ", "ê", "ô", "â", "m ", "a ", "o ", "vel ", "dade ", "mento ", "ário ", "ório "},
		},
		"es": {
			words: "a al cómo como con cuál cuáles cuando cuándo cuánto de del e el ella él en esa ese esta este está esto es eso fue ha hay la las lo los me mi mis más no nos o " +
				"para pero por porque puedo qué que quién quiero se ser si sin son su sus tengo tiene un una unos y ya yo " +
				"ahora algo estoy gustaría algún alguna algunas algunos antes cada casi cuanto cualquier después dime dónde donde dos el ella ellos está estoy hace hasta he le les muy nosotros nuestra nuestro otra otro pon pueden puede puedes quieres quisiera sabes según siempre sobre sólo también te tu tus usted va " +
				"ayuda ayúdame ayer crea dame escribe explica explícame favor genera gracias haz hola hoy lista mañana muestra necesito resume revisa traduce cuenta cuéntame hacer crear escribir mostrar buenos días código",
			letters: "ñ¿¡", endings: []string{"ción", "ciones", "mente", "ito"}, imperative: "a",
			pieces: []string{"ie", "ue", "ll", "j", "ch", "y", "ñ", "ón", "n ", "a ", "o ", "d ", "ble ", "aje ", "miento ", "z "},
		},
		"en": {
			words: "a about all an and any are as at be been but by can could did do does for from get had has have hello help hi how i if in into is it its me my need no not of on or our " +
				"please should so some that the their there these this those to today tomorrow us was we were what when where which who why will with would yesterday you your " +
				"after again also am because before between both down he her him his if just let more most much new next now off old only open other out over she than them then they too under up very without " +
				"add analysis book bug bugs call cancel change check compare costs create delete download explain find fix generate get give list look make order put raise read remove request restart return review run schedule search send set show start stop summarize tell thanks translate turn update write code",
			endings: []string{"ing", "tion", "'s", "n't"}, pieces: []string{"th", "wh", "sh", "ck", "ee", "oo", "w", "k"},
		},
		"fr": {
			words: "à au aux avec ce ces cette comment dans de des du elle en est et il ils je la le les leur ma mais me merci mes mon ne nous on ou où par pas plus pour pourquoi " +
				"quel quelle qui que sa se ses son sont sur un une vous votre aide bonjour écris explique donne fais",
			letters: "çœêèùû", endings: []string{"ment", "tion", "eux"},
		},
		"de": {
			words: "als am an auf aus bei bitte bin bis das dass dem den der des die durch ein eine einen einer es für hallo hat ich im in ist kann mein meine mir mit nach nicht " +
				"oder sich sie sind und uns vom von wann warum was wenn wer wie wir wird wo zu zum zur danke erkläre schreibe",
			letters: "äöüß", endings: []string{"ung", "lich", "keit"},
		},
		"it": {
			words: "a al alla anche che chi ci ciao come con cosa da dal dei del della delle di e è gli grazie ha ho i il in io la le lo ma mi mio mia nel nella non o per perché più " +
				"posso quale quando quanto questo questa se si sono su sul tra un una aiuto scrivi spiega voglio",
			endings: []string{"zione", "zioni", "mente", "gli"},
		},
	}
}

// maxDetectionBytes is how much of a prompt is used to detect its language.
const maxDetectionBytes = 1 << 10

// DetectLanguage returns the language of a prompt: zh by its script, others by frequent
// words. It returns "" if no marker occurs or two languages are equally likely. A
// word counts for each language that has it.
func DetectLanguage(prompt string) string {
	text := removeCode(prompt[:min(len(prompt), maxDetectionBytes)])
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !strings.ContainsRune("'¿¡", r)
	})
	var han, neighbours, spaced int
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r):
			han++
		case isEastAsian(r):
			neighbours++
		}
	}
	for _, w := range words {
		if !strings.ContainsFunc(w, isEastAsian) {
			spaced++
		}
	}
	switch {
	case han+neighbours == 0, han+neighbours < spaced: // each East Asian character counts as a word
		return likeliestLanguage(words)
	case neighbours > han/10: // Japanese and Korean texts always contain some
		return ""
	}
	return "zh"
}

func isEastAsian(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// likeliestLanguage returns the language with the highest score. Ties go to languages with
// localized texts, then to the one whose word pieces occur most. Without any marker only
// the pieces of a longer text decide.
func likeliestLanguage(words []string) string {
	all := indexedMarkers()
	best := highestScores(slices.Sorted(maps.Keys(all)), func(tag string) int { return all[tag].score(words) })
	if len(best) > 1 {
		texts := localizedTexts()
		best = slices.DeleteFunc(best, func(tag string) bool { return texts[tag] == nil })
	}
	if len(best) == 0 && len(words) >= minUnknownWords {
		best = slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(tag string) bool { return all[tag].pieces == nil })
	}
	if len(best) > 1 {
		best = highestScores(best, func(tag string) int { return all[tag].countHints(words) })
	}
	if len(best) > 1 {
		best = slices.DeleteFunc(best, func(tag string) bool { return !all[tag].beginsWithRequest(words[0]) })
	}
	if len(best) != 1 {
		return ""
	}
	return best[0]
}

// highestScores returns the languages with the highest score, none if all scores are 0.
func highestScores(tags []string, points func(tag string) int) []string {
	var best []string
	highest := 0
	for _, tag := range tags {
		switch n := points(tag); {
		case n > highest:
			best, highest = []string{tag}, n
		case n == highest && n > 0:
			best = append(best, tag)
		}
	}
	return best
}

// minUnknownWords is the number of words without a marker from which their pieces decide.
const minUnknownWords = 4

// beginsWithRequest reports whether the first word looks like a request.
func (t languageMarkers) beginsWithRequest(first string) bool {
	return t.imperative != "" && len(first) > 3 && strings.HasSuffix(first, t.imperative)
}

// countHints counts the pieces in the words.
func (t languageMarkers) countHints(words []string) int {
	n := 0
	for _, w := range words {
		for _, p := range t.pieces {
			n += strings.Count(" "+w+" ", p)
		}
	}
	return n
}

// score counts a frequent word twice, and a letter or an ending once.
func (t languageMarkers) score(words []string) int {
	n := 0
	for _, w := range words {
		if t.frequent[w] {
			n += 2
		}
		if t.letters != "" && strings.ContainsAny(w, t.letters) {
			n++
		}
		if slices.ContainsFunc(t.endings, func(e string) bool { return len(w) > len(e)+1 && strings.HasSuffix(w, e) }) {
			n++
		}
	}
	return n
}

// removeCode returns a prompt without code, which looks like English in any language, and
// without addresses.
func removeCode(prompt string) string {
	for _, fence := range []string{"```", "`"} {
		parts := strings.Split(prompt, fence)
		if len(parts)%2 == 0 && fence == "`" {
			continue // an unpaired backtick is not a quote
		}
		var prose []string
		for i := 0; i < len(parts); i += 2 {
			prose = append(prose, parts[i])
		}
		prompt = strings.Join(prose, " ")
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(prompt), isAddress), " ")
}

// isAddress reports whether a word is a URL, a path, a file name or a placeholder. Scripts
// without spaces have no such words.
func isAddress(word string) bool {
	inside := strings.Trim(word, ".")
	return strings.ContainsAny(inside, "/\\@_.") && !strings.ContainsFunc(word, isEastAsian)
}
