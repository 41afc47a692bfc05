package feature

import (
	"strings"

	"github.com/caprouter/caprouter/internal/lexical/lexicon"
	"github.com/caprouter/caprouter/internal/lexical/token"
)

// CommonWords are the feature hashes of lexicon.Common and their stems.
type CommonWords map[uint32]struct{}

// Contains reports whether a feature is that of a common word or its stem.
func (c CommonWords) Contains(hash uint32) bool {
	_, ok := c[hash]
	return ok
}

// ContainsStem reports whether a stem is that of a common word.
func (c CommonWords) ContainsStem(stem []byte) bool {
	return c.Contains(OfStem(stem))
}

// NewCommonWords returns the features of lexicon.Common.
func NewCommonWords() CommonWords {
	common := CommonWords{}
	for w := range strings.FieldsSeq(lexicon.Common) {
		b := []byte(w)
		common[OfWord(b)] = struct{}{}
		common[OfStem(token.Stem(token.FoldNumber(b)))] = struct{}{}
	}
	return common
}
