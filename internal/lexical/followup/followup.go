// Package followup finds texts that continue a request without repeating it: "and 412?" after
// "clean room 411". It knows the connectives, function words and calendar words of English,
// Portuguese, Spanish and Chinese, and no intents.
package followup

import (
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Limits of a follow-up. A longer text is a request of its own, and a longer previous request
// contains so many words that a word of it says little.
const (
	maxBytes         = 200
	maxPreviousBytes = 4 << 10
	maxTokens        = 12
	maxPreviousWords = 60
)

// Continues reports whether a text is a follow-up of the previous request. It names at least one
// new value of a kind that the previous request has, too: an identifier (a word with a digit, or a
// placeholder of a masked value), a calendar word, or one of the names. All else are function words
// and words of the previous request. A connective relates the two ("and", "what about", "too"), or
// else the value is an identifier of the same form as one of the previous request. A text with a
// negation is no follow-up.
func Continues(text, previous string, names []string) bool {
	if len(text) > maxBytes || len(previous) > maxPreviousBytes || strings.ContainsAny(text, "`{}<>") {
		return false
	}
	tokens := readTokens(text)
	if len(tokens) > maxTokens {
		return false
	}
	before := describe(previous)
	tokens, connected := skipConnectives(tokens)
	values, sameForm := 0, true // values are the new ones
	for _, t := range tokens {
		switch kind := t.kind(); {
		case kind == negator:
			return false
		case isName(t, names):
			values++
			sameForm = false
		case t.identifier:
			if !before.acceptsIdentifier(t) {
				return false
			}
			sameForm = sameForm && before.hasForm(t)
			if !before.hasIdentifier(t) {
				values++
			}
		case kind == calendar && before.calendar:
			sameForm = false
			if !before.contains(t) {
				values++
			}
		case kind == additive:
			connected = true
		case kind != filler && !before.contains(t):
			return false
		}
	}
	return values > 0 && (connected || sameForm)
}

// skipConnectives returns the tokens behind the courtesies and connectives at the beginning, and
// whether there was a connective.
func skipConnectives(tokens []token) (rest []token, found bool) {
	l := lists()
	for len(tokens) > 0 {
		n := 0
		for _, phrase := range l.connectives {
			if len(phrase) > n && len(phrase) <= len(tokens) && slices.EqualFunc(phrase, tokens[:len(phrase)], func(w string, t token) bool { return w == t.folded }) {
				n = len(phrase)
			}
		}
		switch {
		case n > 0:
			tokens, found = tokens[n:], true
		case l.courtesies[tokens[0].folded]:
			tokens = tokens[1:]
		default:
			return tokens, found
		}
	}
	return nil, found
}

// isName reports whether a token is a word of one of the names, which may be written as labels:
// cost_center.
func isName(t token, names []string) bool {
	return t.kind() == other && slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(readTokens(name), func(n token) bool { return n.folded == t.folded || slices.Contains(n.parts(), t.folded) })
	})
}

// request describes the previous request.
type request struct {
	text        string          // for words of Chinese, which has no spaces
	words       map[string]bool // folded, in the singular; empty if there are too many
	identifiers []token
	calendar    bool
}

func describe(text string) request {
	tokens := readTokens(text)
	r := request{text: normalize(text), words: map[string]bool{}}
	for _, t := range tokens {
		r.calendar = r.calendar || t.kind() == calendar || t.isDate() && formOf(t.folded) != number
		if t.identifier {
			r.identifiers = append(r.identifiers, t)
		}
		if t.placeholder {
			continue
		}
		for _, part := range t.parts() {
			r.words[singular(part)] = true
		}
	}
	if len(tokens) > maxPreviousWords {
		r.text, r.words = "", nil
	}
	return r
}

// contains reports whether the request contains the word.
func (r *request) contains(t token) bool {
	if t.unspaced {
		return len([]rune(t.folded)) >= 2 && strings.Contains(r.text, t.folded)
	}
	return r.words[singular(t.folded)]
}

// acceptsIdentifier reports whether an identifier may stand for a value of the request. Its parts
// that are words must be those of the request: "order-412" for "order-411". A date or time does not
// stand for another identifier.
func (r *request) acceptsIdentifier(t token) bool {
	isOtherWord := func(part string) bool { return !hasDigit(part) && !t.isCode(part) && !r.words[singular(part)] }
	switch {
	case slices.ContainsFunc(t.parts(), isOtherWord):
		return false
	case r.hasForm(t):
		return true
	case t.isDate():
		return r.calendar
	}
	return len(r.identifiers) > 0
}

func (r *request) hasIdentifier(t token) bool {
	return slices.ContainsFunc(r.identifiers, func(i token) bool { return i.folded == t.folded })
}

// hasForm reports whether an identifier of the request has the same form.
func (r *request) hasForm(t token) bool {
	return slices.ContainsFunc(r.identifiers, t.hasFormOf)
}

func singular(word string) string { return strings.TrimSuffix(word, "s") }

func hasDigit(word string) bool { return strings.ContainsFunc(word, unicode.IsDigit) }

// wordKind is what a word does in a follow-up.
type wordKind int

const (
	other    wordKind = iota
	filler            // a function word
	additive          // relates the text to the previous request at any position
	calendar          // a day, a time of the day, a month
	negator
)

// Words, folded: in lower case and without accents. The negators include prepositions that
// exclude. The Portuguese "no" (in the) is also the negation of English and Spanish, and counts as
// one. Question words, verbs and modal verbs are missing, because another request has others.
const (
	courtesies = `please thanks thank you hi hello hey ok okay favor porfa obrigado obrigada gracias ola oi hola 请 请问 谢谢 好的 你好`
	fillers    = `
the a an my our your this that these those one ones at on in of for to from with by number nr ref and or
o a os as um uma de do da dos das em na nas nos para pra por pelo pela com ao aos meu minha meus minhas nosso nossa este esta esse essa aquele aquela
num numero nº n e ou
el la los las lo un una del en con al mi mis nuestro nuestra ese aquel y u
的 号 这个 那个 和 吗 我 我的 一下 呀 啊`
	additives = `also too plus likewise tambem tambien igualmente 也 呢 还有`
	negators  = `
not no don dont didn never without except excluding but nor neither instead rather
nao nunca jamais sem exceto menos mas salvo
jamas sin excepto pero sino ni nem
不 没 没有 别 不要 不是 除了 无`
	calendars = `
today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday next last week weekend month year morning afternoon
evening noon midnight january february march april may june july august september october november december
hoje amanha ontem segunda terca quarta quinta sexta sabado domingo feira semana mes ano proximo proxima passado passada manha tarde noite
janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
hoy manana ayer pasado lunes martes miercoles jueves viernes sabado domingo noche
enero febrero marzo mayo junio julio agosto septiembre octubre noviembre diciembre
今天 明天 后天 昨天 前天 今晚 明晚 本周 这周 下周 上周 周末 本月 这个月 下个月 上个月 今年 明年 去年
周一 周二 周三 周四 周五 周六 周日 星期一 星期二 星期三 星期四 星期五 星期六 星期日 星期天 早上 上午 中午 下午 晚上`
	// connectives are at the beginning, one a line.
	connectives = `
and
or
also
plus
then
what about
how about
same for
same with
as well as
e
ou
e quanto a
e quanto ao
quanto a
quanto ao
que tal
o mesmo para
y
u
que hay de
y que hay de
lo mismo para
那
那么
还有
以及
另外
和`
)

type wordLists struct {
	kinds       map[string]wordKind
	courtesies  map[string]bool
	connectives [][]string
	longest     int // characters of a Chinese word
}

// lists returns the parsed lists, which are immutable.
var lists = sync.OnceValue(func() *wordLists {
	l := &wordLists{kinds: map[string]wordKind{}, courtesies: map[string]bool{}}
	add := func(words string, kind wordKind) {
		for word := range strings.FieldsSeq(words) {
			l.kinds[word] = kind
			if r := []rune(word); isHan(r[0]) {
				l.longest = max(l.longest, len(r))
			}
		}
	}
	for line := range strings.Lines(connectives) {
		if phrase := strings.Fields(line); len(phrase) > 0 {
			l.connectives = append(l.connectives, phrase)
			if len(phrase) == 1 {
				add(phrase[0], filler)
			}
		}
	}
	add(courtesies, filler)
	add(fillers, filler)
	add(additives, additive)
	add(calendars, calendar)
	add(negators, negator)
	for word := range strings.FieldsSeq(courtesies) {
		l.courtesies[word] = true
	}
	return l
})
