package lexical

import (
	"github.com/caprouter/caprouter/internal/lexical/feature"
	"github.com/caprouter/caprouter/internal/lexical/synonyms"
)

// replacementIndex finds the word of the corpus that an unknown word or a phrase counts as.
type replacementIndex struct {
	typos     typoIndex
	synonyms  synonyms.Index
	phrases   synonyms.Phrases
	writtenAs map[string]string // singular that no text contains → the word of the corpus that evidence shows
}

// wordReplacement is a word of the registry that a word or phrase of a text counts as.
type wordReplacement struct {
	meant   string
	written string // in the text
	kind    EvidenceKind
}

// replaceWord returns the word of the corpus that an unknown folded word with the given
// stem counts as, and whether it is a synonym or a misspelling; "" if there is none.
func (m *Model) replaceWord(word, stem []byte) (string, EvidenceKind) {
	meant := m.synonyms[string(stem)]
	if meant != "" && (synonyms.HasWord(word) || !m.common.Contains(feature.OfWord(word)) && synonyms.HasForm(word, stem)) {
		return meant, EvidenceSynonym // and no other word that only has the same stem
	}
	if m.common.ContainsStem(stem) || synonyms.HasStem(stem) {
		return "", "" // spelt correctly
	}
	return m.typos.correct(word), EvidenceTypo
}
