// Package synonyms finds the words of a corpus that mean the same as other words, also of other
// languages, by the lists of package lexicon.
//
// synonyms.go indexes the synonyms of the words of a corpus, single words and phrases. meanings.go
// reads the lists, and inflection.go decides which forms of a word they list as well. Words with
// a common meaning also have a common vector.
package synonyms

import (
	"cmp"
	"slices"

	"github.com/caprouter/caprouter/internal/lexical/token"
)

// Index maps the stem of a word that the corpus does not contain to a word of the
// corpus with the same meaning: the one that occurs most often.
type Index map[string]string

// MaxPhraseWords bounds the words of a phrase.
const MaxPhraseWords = 4

// Phrases maps phrases to words of the corpus with the same meaning. Phrases are read
// from their last word backwards: the key is the hash of the stems from there on.
type Phrases map[uint64]phraseEnd

// phraseEnd is the end of one or more phrases.
type phraseEnd struct {
	meant  string // the word that it means if it is a whole phrase
	longer bool   // it is the end of a longer phrase as well
}

// New builds the indexes from the folded words of a corpus and their counts. Of several
// words with the same meaning, the one with the highest preference counts, else the most
// frequent one.
func New(count, preference map[string]int) (Index, Phrases) {
	frequent := map[string]string{} // by stem: its most frequent spelling
	known, listed := knownMeanings(), map[string]bool{}
	for w, n := range count {
		stem := token.StemOf(w)
		listed[stem] = listed[stem] || known.contains([]byte(w), []byte(stem))
		if best, ok := frequent[stem]; !ok || n > count[best] || n == count[best] && w < best {
			frequent[stem] = w
		}
	}
	synonyms, phrases := Index{}, Phrases{}
	for _, m := range known.list {
		meant := ""
		for _, stem := range m.stems {
			own := frequent[stem]
			if listed[stem] && (meant == "" || cmp.Or(preference[own]-preference[meant], count[own]-count[meant]) > 0) {
				meant = own
			}
		}
		if meant == "" {
			continue
		}
		for _, stem := range m.stems {
			if _, ok := frequent[stem]; !ok {
				synonyms[stem] = meant
			}
		}
		for _, phrase := range m.phrases {
			phrases.add(phrase, meant)
		}
	}
	return synonyms, phrases
}

// add adds a phrase. Of several meanings the first is kept.
func (x Phrases) add(stems []string, meant string) {
	var key uint64
	for i, stem := range slices.Backward(stems) {
		key = phraseKey(key, HashStem([]byte(stem)))
		end := x[key]
		if i > 0 {
			end.longer = true
		} else if end.meant == "" {
			end.meant = meant
		}
		x[key] = end
	}
}

// Longest returns what the longest phrase that ends with the word at a position means, and
// the number of its words, 0 if there is none. stems are the hashes of the last stems, by
// position modulo MaxPhraseWords.
func (x Phrases) Longest(stems *[MaxPhraseWords]uint64, at int32) (meant string, words int32) {
	var key uint64
	for n := range min(at+1, MaxPhraseWords) {
		key = phraseKey(key, stems[(at-n)%MaxPhraseWords])
		end, ok := x[key]
		if ok && end.meant != "" {
			meant, words = end.meant, n+1
		}
		if !end.longer {
			break
		}
	}
	return meant, words
}

// phraseKey extends a key by the hash of the stem before it.
func phraseKey(key, stem uint64) uint64 { return (key ^ stem) * fnvPrime }

// Parameters of a 64-bit FNV-1a hash.
const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// HashStem returns the hash of a stem in a phrase.
func HashStem(stem []byte) uint64 {
	h := fnvOffset
	for _, c := range stem {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}
