// Package negation finds the verbs of a text that are negated as requests: "don't cancel my
// order" asks not to cancel. It knows common forms of English, Spanish and Portuguese, and a few of Chinese.
package negation

import (
	"slices"
	"strings"
	"sync"
)

// Word is a word of a text: in lower case and without accents, divided at apostrophes.
type Word struct {
	Text string
	// Begins reports whether the word follows the beginning of the text, or a punctuation
	// character.
	Begins bool
}

// IsNegator reports whether a word is one of which every negation has one.
func IsNegator(word []byte) bool {
	switch string(word) {
	case "not", "don", "dont", "didn", "no", "nao", "never", "nunca", "jamas", "jamais", "别", "先别", "万别", "别再", "勿", "无需", "无须":
		return true
	}
	return false
}

// FindVerbs returns the negated verbs, in order.
func FindVerbs(words []Word) (verbs []string) {
	g := parsedGrammar()
	begins, subject := false, false
	for at, w := range words {
		begins = begins || w.Begins
		longest := 0
		for _, p := range g.patterns {
			n := len(p.words)
			if n > longest && at+n < len(words) && (begins || !p.imperative) && p.matches(words[at:at+n]) && g.mayNegate(&p, words[at+n].Text) {
				longest = n
			}
		}
		if longest > 0 {
			verbs = append(verbs, words[at+longest].Text)
		}
		subject = subject || slices.Contains(g.subjects, w.Text)
		begins = slices.Contains(g.courtesies, w.Text) || !subject && slices.Contains(g.connectives, w.Text)
	}
	return verbs
}

// FindRefused returns the words of the first clause of the text that states what is not wanted,
// behind the wish: "a bus pass" for "I don't want a bus pass". It returns none if the wish is to do
// something (see FindVerbs), or if the text is about the end of what was wanted: "I don't
// need it anymore".
func FindRefused(words []Word) []Word {
	g := parsedGrammar()
	for at := range words {
		if at > 0 && slices.Contains(g.endings, words[at-1].Text) {
			continue
		}
		for _, p := range g.refusals {
			n := len(p.words)
			if at+n >= len(words) || !p.matches(words[at:at+n]) {
				continue
			}
			rest := words[at+n:]
			if end := slices.IndexFunc(rest, func(w Word) bool { return w.Begins }); end >= 0 {
				rest = rest[:end]
			}
			if len(rest) == 0 || rest[0].Text == "to" || slices.ContainsFunc(rest, func(w Word) bool { return slices.Contains(g.endings, w.Text) }) {
				return nil
			}
			return rest
		}
	}
	return nil
}

// pattern is the part of a negation before its verb.
type pattern struct {
	words      [][]string // alternatives for each word
	imperative bool       // it counts only at the beginning of a clause, or after a connective
	endings    []string   // of the verb; nil = any. See mayNegate
}

// forms are the patterns, one a line: the words, and behind a colon the endings of the verb.
// "^" is an imperative. The ending BASE is none of the past tense or the third person, and
// "~en" is one of the requests below. "I do not receive it", "you never refunded me" and "no funciona" are
// complaints, so an imperative must be at the beginning of a clause, and in Spanish and
// Portuguese only the second person (-es) is sure to be none. The polite imperative (cancelen,
// cancele) has the endings of the indicative of other verbs (venden, recebe), so the verb must be
// known, and without accents the Spanish singular is that of the past tense (cancelé). A gerund
// behind "bother" is what need not be done, and "no tiene que ver" is an idiom.
// In Chinese the words do not contain 的 and 了, so the verb must be known, because 别的房间 is another
// room, and 不要 is no negation, because 不要了，取消 asks to cancel.
const forms = `
^ do not
^ don t
^ dont
do not WISH to
don t WISH to
dont WISH to
didn t WISH to
do not WISH OBJECT to
don t WISH OBJECT to
dont WISH OBJECT to
no need to
no longer WISH to
^ do not bother to
^ don t bother to
^ dont bother to
^ never bother to
no need to bother : ing
^ do not bother : ing
^ don t bother : ing
^ dont bother : ing
^ never bother : ing
no WISH
no WISH que
nao WISH
nao WISH que
nao WISH de
not necessary to
no hace falta
no hace falta que
no es necesario
no es necesario que
nao e preciso
nao e preciso que
nao e necessario
nao e necessario que
^ no te molestes en
^ no se moleste en
^ no se molesten en
^ no os molesteis en
^ nao te incomodes em
^ nao se incomode em
^ nao se incomodem em
no tienes que
no tiene que : ar ir
no tienen que : ar ir
nao tens de
nao tens que
nao tem de
nao tem que : ar ir
^ no : es ~en
^ no OBJECT : es ~en
^ nao : es ~e ~em
^ nao OBJECT : es ~e ~em
^ never : BASE
^ nunca : ~es ~en ~em
^ nunca OBJECT : ~es ~en ~em
^ jamas : ~es ~en
^ jamas OBJECT : ~es ~en
^ jamais : ~es ~e ~em
^ jamais OBJECT : ~es ~e ~em
别 : ~
先别 : ~
万别 : ~
别再 : ~
勿 : ~
无需 : ~
无须 : ~`

// refusals are the patterns before what is not wanted.
const refusals = `
do not WANT
don t WANT
dont WANT
no WANT
nao WANT`

// Words that WISH, WANT and OBJECT stand for, words that end a wish of before, words that precede the first word of a clause, and
// subjects, to which a clause behind a connective belongs: "you charged me and do not refund".
const (
	wishes = "want need wish have quiero queremos quisiera quisieramos necesito necesitamos " +
		"quero queremos queria queriamos preciso precisa precisamos precisam"
	wants       = "want need quiero queremos quisiera necesito necesitamos quero queria preciso precisamos"
	endings     = "anymore more longer ya mas mais"
	objects     = "you him her them us it anyone me se te lo la le les os nos o a"
	courtesies  = "please pls favor"
	connectives = "but and pero mas y e"
	// requests are stems of Spanish and Portuguese verbs in -ar, as their imperatives have them,
	// and Chinese verbs.
	requests = "activ agend anul apagu atualiz ativ actualic bloque bloquei borr cambi cancel cargu cerr cierr cobr compr " +
		"confirm delet desactiv desativ descargu elimin envi factur fech llam mand modifiqu mud pagu program public publiqu " +
		"reagend reembols renov renuev reprogram reserv revoqu " +
		"取消 退款 退货 退订 退房 打扫 清洁 清理 预订 预约 付款 支付 扣款 充值 转账 续费 续订 发送 发货 送货 配送 寄送 " +
		"删除 修改 更改 更换 更新 升级 关闭 开通 激活 停用 暂停 注销 安排 打印 下单"
	// pasts are irregular past tenses.
	pasts    = "been bought came did found gave got had kept left lost made paid saw sent sold told took went were was"
	subjects = "they you he she it we who which that nobody el ella ellos ustedes ele ela eles voces"
)

// grammar is the parsed form of the constants. It is immutable.
type grammar struct {
	patterns                          []pattern
	courtesies, connectives, subjects []string
	requests, pasts, endings          []string
	refusals                          []pattern
}

var parsedGrammar = sync.OnceValue(func() *grammar {
	g := &grammar{
		courtesies: strings.Fields(courtesies), connectives: strings.Fields(connectives), subjects: strings.Fields(subjects),
		requests: strings.Fields(requests), pasts: strings.Fields(pasts), endings: strings.Fields(endings),
	}
	g.patterns, g.refusals = parsePatterns(forms), parsePatterns(refusals)
	return g
})

func parsePatterns(lines string) (patterns []pattern) {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		words, endings, limited := strings.Cut(line, ":")
		var p pattern
		if limited {
			p.endings = strings.Fields(endings)
		}
		for word := range strings.FieldsSeq(words) {
			switch word {
			case "^":
				p.imperative = true
			case "WISH":
				p.words = append(p.words, strings.Fields(wishes))
			case "WANT":
				p.words = append(p.words, strings.Fields(wants))
			case "OBJECT":
				p.words = append(p.words, strings.Fields(objects))
			default:
				p.words = append(p.words, []string{word})
			}
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// matches reports whether the words are those of the pattern.
func (p *pattern) matches(words []Word) bool {
	for i, alternatives := range p.words {
		if !slices.Contains(alternatives, words[i].Text) {
			return false
		}
	}
	return true
}

// mayNegate reports whether the verb has one of the endings.
func (g *grammar) mayNegate(p *pattern, verb string) bool {
	return p.endings == nil || slices.ContainsFunc(p.endings, func(e string) bool {
		if e == "BASE" {
			third := strings.HasSuffix(verb, "s") && !strings.HasSuffix(verb, "ss")
			return !third && !strings.HasSuffix(verb, "ed") && !slices.Contains(g.pasts, verb)
		}
		if ending, known := strings.CutPrefix(e, "~"); known {
			stem, ok := strings.CutSuffix(verb, ending)
			return ok && slices.Contains(g.requests, stem)
		}
		return strings.HasSuffix(verb, e)
	})
}
