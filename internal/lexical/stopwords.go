package lexical

import "strings"

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
