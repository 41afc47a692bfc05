package weakkey

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	minSecretBytes   = 32 // RFC 7518, section 3.2
	maxSecretBytes   = 16 << 10
	minDistinctBytes = 10  // 32 random hexadecimal digits have fewer in one of ten thousand cases
	minBitsPerByte   = 2.7 // of estimateEntropy: sentences have 2 to 2.6, random hexadecimal digits 3.6, random base64 4
)

// CheckSecret returns an error if the secret can be guessed or looked up. It does
// not prove that a secret is strong.
func CheckSecret(secret []byte) error {
	switch {
	case len(secret) == 0:
		return errors.New("the secret is empty")
	case bytes.Contains(secret, []byte("-----BEGIN ")) || isPublicKey(secret):
		return errors.New("the secret is a key file, and half of such keys are public")
	case len(secret) < minSecretBytes:
		return fmt.Errorf("the secret is %d bytes long, HS256 needs %d or more", len(secret), minSecretBytes)
	case len(secret) > maxSecretBytes:
		return fmt.Errorf("the secret is longer than %d bytes", maxSecretBytes)
	}
	digest := sha256.Sum256(secret)
	if source, ok := publishedSecrets()[hex.EncodeToString(digest[:])]; ok {
		return fmt.Errorf("the secret is that of %s, which is published", source)
	}
	switch {
	case isRepetition(secret):
		return errors.New("the secret repeats a short text")
	case isSequence(secret):
		return errors.New("the secret is a sequence")
	case countDistinct(secret) < minDistinctBytes:
		return fmt.Errorf("the secret is made of fewer than %d different bytes", minDistinctBytes)
	}
	if perByte := estimateEntropy(secret) / float64(len(secret)); perByte < minBitsPerByte {
		return fmt.Errorf("the secret is made of words: an estimated %.1f bits per byte, random text has 3.5 or more", perByte)
	}
	return nil
}

func isPublicKey(der []byte) bool {
	_, err := x509.ParsePKIXPublicKey(der)
	return err == nil
}

// isRepetition reports whether the secret repeats the same bytes at least twice;
// the last repetition may be incomplete.
func isRepetition(secret []byte) bool {
	for period := 1; period <= len(secret)/2; period++ {
		if bytes.HasPrefix(secret, secret[period:]) {
			return true
		}
	}
	return false
}

// isSequence reports whether half of the bytes differ from their neighbour by the
// same number, as in abcdefgh and 99887766.
func isSequence(secret []byte) bool {
	var steps [256]int
	for i, b := range secret[1:] {
		if steps[b-secret[i]]++; steps[b-secret[i]] >= len(secret)/2 {
			return true
		}
	}
	return false
}

func countDistinct(secret []byte) int {
	var seen [256]bool
	n := 0
	for _, b := range secret {
		if !seen[b] {
			seen[b] = true
			n++
		}
	}
	return n
}

// estimateEntropy estimates how many bits an attacker must guess who knows that secrets
// may be sentences, of any European language and with any separators. A letter that
// usually follows the one before it costs one bit; random letters rarely do.
func estimateEntropy(secret []byte) (bits float64) {
	usual := usualPairs()
	var before byte
	for _, b := range secret {
		lower := b
		if 'A' <= b && b <= 'Z' {
			lower = b + 'a' - 'A'
		}
		isLetter, afterLetter := 'a' <= lower && lower <= 'z', 'a' <= before|0x20 && before|0x20 <= 'z' && before != 0
		switch {
		case isLetter && afterLetter && usual[[2]byte{before | 0x20, lower}]:
			bits++
		case isLetter:
			bits += 4.7 // one of 26
		case '0' <= b && b <= '9':
			bits += 3.3 // one of 10
		case afterLetter && (b == ' ' || b == '-' || b == '_' || b == '.' || b == ','):
			bits += 0.5 // the end of a word
		default:
			bits += 5
		}
		before = b
	}
	return bits
}

// usualPairs returns the most frequent pairs of letters in English, German and the
// Romance languages, and pairs of neighbours on a keyboard. They are about two thirds of
// the pairs in texts of these languages, and a fifth of random pairs.
func usualPairs() map[[2]byte]bool {
	pairs := map[[2]byte]bool{}
	for _, text := range []string{
		"th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur",
		"ei ie ge sc un ic au ss da we ns um",
		"ao os do da ra nt co qu ue ui ad ca ci ta ma pa po pr pe so mo no na di la lo us em am oi ir il ac tr ec et ai ol ap sp op ev iv ut up un ul",
		"wo ke ey pl ow ho ck ay ly ks my gh ts sw rd pa ss sh wh fo ot oo ag",
		"qw rt ty yu op as sd df fg hj jk kl zx xc cv vb bn nm",
	} {
		for p := range strings.FieldsSeq(text) {
			pairs[[2]byte{p[0], p[1]}] = true
		}
	}
	return pairs
}
