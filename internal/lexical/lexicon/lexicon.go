// Package lexicon contains what the lexical classifier knows about English, Portuguese,
// Spanish and Chinese before it has seen a registry: which words mean the same, which are
// common, and which have no content.
// All words are folded: in lower case and without accents.
package lexicon

import _ "embed"

// Synonyms are words and phrases with nearly the same meaning at work, one meaning a line,
// and a blank line between two fields of work. They let a registry be asked in words that it
// does not contain, and in the other languages. Words with several frequent meanings (leave,
// charge as a verb) are only in a line if the other meanings are rare in requests, and a word
// is in one line only. Inflections of a word that have the same stem are not repeated. English
// words after a bar do not count in the vector of the line (package wordvectors).
//
// The words of a phrase are joined by underscores: money_back. A phrase has two to four
// words as they are tokenized, so that hasn't is two words, and it has its meaning without
// any other word of the request. It lets a problem be described without its noun: "it does
// not turn on" is a request for a repair.
//
//go:embed synonyms.txt
var Synonyms string

// Translations are English words, each with the words of Portuguese and Spanish that mean it,
// one English word a line, which comes first: "knee rodilla joelho". A foreign word may be on
// several lines. It has the vector of its translations (package wordvectors) and is no
// synonym of them. Words of Synonyms and Common, English words, and forms with the same stem
// are left out.
//
//go:embed translations.txt
var Translations string

// Chinese are English words, each with the Chinese words that mean it, one English word a
// line, which comes first: "invoice 发票 账单". If the English word, or phrase, is in Synonyms,
// the Chinese words are synonyms of its line; else they are translations, as in Translations.
// A Chinese word is on one line only.
//
//go:embed chinese.txt
var Chinese string

// Common are frequent words of everyday language that are not stop words: verbs that say
// what to do but not with what (check, send, update), times, numbers, people, and general
// nouns and adjectives, in English, Portuguese, Spanish and Chinese. A registry is too small to show
// that they are frequent. They are compared by their stems.
//
//go:embed common.txt
var Common string

// StopWords are words without content in English, Portuguese, Spanish and Chinese: articles,
// pronouns, prepositions, auxiliaries and polite phrases.
//
//go:embed stopwords.txt
var StopWords string
