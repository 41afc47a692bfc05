// Package negation finds the verbs of a text that are negated as requests: "don't cancel my
// order" asks not to cancel. It knows common forms of English, Spanish and Portuguese.
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

// MayBegin reports whether a word may begin a negation.
func MayBegin(word []byte) bool {
	switch string(word) {
	case "don", "dont", "didn", "do", "no", "nao":
		return true
	}
	return false
}

// FindVerbs returns the negated verbs, in order.
func FindVerbs(words []Word) (verbs []string) {
	begins, subject := false, false
	for at, w := range words {
		begins = begins || w.Begins
		longest := 0
		for _, p := range patterns() {
			n := len(p.words)
			if n > longest && at+n < len(words) && (begins || !p.imperative) && p.matches(words[at:at+n]) && p.mayNegate(words[at+n].Text) {
				longest = n
			}
		}
		if longest > 0 {
			verbs = append(verbs, words[at+longest].Text)
		}
		subject = subject || slices.Contains(strings.Fields(subjects), w.Text)
		begins = slices.Contains(strings.Fields(courtesies), w.Text) || !subject && slices.Contains(strings.Fields(connectives), w.Text)
	}
	return verbs
}

// pattern is the part of a negation before its verb.
type pattern struct {
	words      []string
	imperative bool     // it counts only at the beginning of a clause, or after a connective
	endings    []string // of the verb; nil = any
}

// forms are the patterns, one a line: the words, and behind a colon the endings of the verb.
// "^" is an imperative. "I do not receive it", "you never refunded me" and "no funciona" are
// complaints, so an imperative must be at the beginning of a clause, and in Spanish and
// Portuguese only the second person (-es) is sure to be none.
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
no WISH
no WISH que
nao WISH
nao WISH que
^ no : es
^ no OBJECT : es
^ nao : es
^ nao OBJECT : es`

// Words that WISH and OBJECT stand for, words that precede the first word of a clause, and
// subjects, to which a clause behind a connective belongs: "you charged me and do not refund".
const (
	wishes      = "want need wish have quiero quisiera necesito quero queria preciso precisa"
	objects     = "you him her them us it anyone me se te lo la le les os nos o a"
	courtesies  = "please pls favor"
	connectives = "but and pero mas y e"
	subjects    = "they you he she it we who which that nobody el ella ellos ustedes ele ela eles voces"
)

// patterns returns the parsed forms.
var patterns = sync.OnceValue(func() (all []pattern) {
	for line := range strings.Lines(strings.TrimSpace(forms)) {
		words, endings, limited := strings.Cut(line, ":")
		p := pattern{words: strings.Fields(words)}
		if limited {
			p.endings = strings.Fields(endings)
		}
		if p.words[0] == "^" {
			p.imperative, p.words = true, p.words[1:]
		}
		all = append(all, p)
	}
	return all
})

// matches reports whether the words are those of the pattern.
func (p *pattern) matches(words []Word) bool {
	for i, want := range p.words {
		alternatives := want
		switch want {
		case "WISH":
			alternatives = wishes
		case "OBJECT":
			alternatives = objects
		}
		if !slices.Contains(strings.Fields(alternatives), words[i].Text) {
			return false
		}
	}
	return true
}

// mayNegate reports whether the verb has one of the endings.
func (p *pattern) mayNegate(verb string) bool {
	return p.endings == nil || slices.ContainsFunc(p.endings, func(e string) bool { return strings.HasSuffix(verb, e) })
}
