package feature

// A feature is identified by a 32-bit hash of its text and kind. Among 100,000
// features about one pair collides, which costs the precision of a weight and
// not a wrong answer. The seeds keep the kinds apart.
const (
	seedWord uint32 = 0x811c9dc5
	seedPair uint32 = 0x9e3779b1
	seedStem uint32 = 0x7feb352d
	seedGram uint32 = 0x846ca68b
	seedText uint32 = 0x27d4eb2f

	hashPrime uint32 = 0x01000193 // FNV-1a
)

// hashBytes continues an FNV-1a hash with the bytes.
func hashBytes(h uint32, b []byte) uint32 {
	for _, c := range b {
		h = (h ^ uint32(c)) * hashPrime
	}
	return h
}

// mixHash spreads an FNV hash over all bits (the finalizer of MurmurHash3),
// because Table indexes by the low bits.
func mixHash(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// OfWord returns the feature of a folded word.
func OfWord(word []byte) uint32 { return mixHash(hashBytes(seedWord, word)) }

// OfStem returns the feature of a stem.
func OfStem(stem []byte) uint32 { return mixHash(hashBytes(seedStem, stem)) }

// HashText returns the hash of a whole text, for Combine.
func HashText(text string) uint32 { return hashBytes(seedText, []byte(text)) }

// Combine returns a hash of a hash and a number, spread over all bits.
func Combine(h, n uint32) uint32 { return mixHash(h + n*hashPrime) }
