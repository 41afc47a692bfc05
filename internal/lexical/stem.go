package lexical

import (
	"bytes"
	"strings"
)

// foldNumber removes the plural, so that queries equals query, funções função
// and códigos código. It also removes a final e and replaces y, which related
// languages spell differently. It works in place on a folded word. The result
// is only compared, so its spelling does not matter: code becomes cod.
func foldNumber(b []byte) []byte {
	if len(b) < 4 || string(b) == "news" {
		return b
	}
	switch {
	case len(b) > 4 && hasSuffix(b, "sis"): // analysis, analyses, análisis
		b = b[:len(b)-2]
	case hasSuffix(b, "s") && !hasSuffix(b, "ss"):
		b = b[:len(b)-1]
	}
	if len(b) >= 4 && hasSuffix(b, "e") {
		b = b[:len(b)-1]
	}
	if len(b) >= 4 && hasSuffix(b, "ao") { // função, funções
		b = append(b[:len(b)-2], 'o')
	}
	if len(b) >= 4 {
		for i := 1; i < len(b); i++ {
			if b[i] == 'y' {
				b[i] = 'i'
			}
		}
	}
	return b
}

// stemWord removes the most common verb endings and the Romance gender from a
// word without its plural: reviewing, reviewed and review; analisar, analisa,
// analyze and analysis; modelo and model. Short words are unchanged, because
// they collide by accident.
func stemWord(b []byte) []byte {
	switch n := len(b); {
	case n >= 6 && hasSuffix(b, "ing") && hasVowel(b[:n-3]):
		b = undoubleConsonant(b[:n-3])
	case n >= 5 && hasSuffix(b, "ed") && b[n-3] != 'e' && hasVowel(b[:n-2]):
		b = undoubleConsonant(b[:n-2])
	case n >= 7 && hasSuffix(b, "ar"):
		b = b[:n-2]
	case n >= 6 && (hasSuffix(b, "a") || hasSuffix(b, "o")):
		b = b[:n-1]
	}
	if len(b) >= 5 && hasSuffix(b, "iz") {
		b[len(b)-1] = 's'
	}
	return b
}

func hasSuffix(b []byte, suffix string) bool {
	return len(b) >= len(suffix) && string(b[len(b)-len(suffix):]) == suffix
}

func hasVowel(b []byte) bool { return bytes.ContainsAny(b, "aeiou") }

// undoubleConsonant turns plann (of planning) into plan; bill, pass and buzz
// stay.
func undoubleConsonant(b []byte) []byte {
	n := len(b)
	if n < 4 || b[n-1] != b[n-2] || b[n-1] == 'l' || b[n-1] == 's' || b[n-1] == 'z' {
		return b
	}
	return b[:n-1]
}

// stopWords are words without content in English, Portuguese and Spanish:
// articles, pronouns, prepositions, auxiliaries and polite phrases. They are
// written without accents, because text is folded.
const stopWords = `
a an the this that these those it its is are was were be been being am i im ive me my we us our you your he she they them their
of to in on at by for from with without into over about as and or but if then than so also just not no
do does did doing have has had having can could would should will shall may might must let lets
please kindly thanks thank hi hello hey want wants need needs like would id ill youre
s t m d ll re ve don
what whats which who whom how when where why there here some any all more most very too up out

o os as um uma uns umas de do da dos das no na nos nas ao aos pelo pela pelos pelas em por para pra com sem sobre
e ou mas se que qual quais quem como quando onde porque meu minha meus minhas nosso nossa nossos nossas seu sua seus suas
eu voce voces ele ela eles elas isso isto este esta estes estas esse essa esses essas aquele aquela
ser sao foi era esta estao estou tem ter ha favor obrigado obrigada ola oi quero queria preciso gostaria pode podem poderia
depois entao tambem muito mais nao sim ja

el la los las un una unos unas del al en con sin para por segun hasta desde entre y u pero si
que cual cuales quien como cuando donde porque mi mis tu tus su sus nuestro nuestra nuestros nuestras
yo usted ustedes nosotros esto eso este esta estos estas ese esa esos esas aquel aquella
es son fue era estan estoy tiene tener hay gracias hola quiero quisiera necesito gustaria puede puedes podria podrias
despues luego entonces tambien muy mas no lo le les
`

// newStopSet returns the set of stop words.
func newStopSet() map[string]bool {
	stops := map[string]bool{}
	for w := range strings.FieldsSeq(stopWords) {
		stops[w] = true
	}
	return stops
}
