package weakkey

import "math/big"

// isROCAModulus reports whether the modulus has the weakness CVE-2017-15361
// (ROCA): primes that are powers of 65537 modulo the product of small primes, plus
// a multiple of it. Such keys can be factored ("The Return of Coppersmith's
// Attack", section 2.1). The modulus is then itself a power of 65537 modulo each
// small prime; this holds for less than one in 2^27 other moduli.
func isROCAModulus(n *big.Int) bool {
	for _, prime := range [...]uint64{
		11, 13, 17, 19, 37, 53, 61, 71, 73, 79, 97, 103, 107, 109, 127, 151, 157,
	} {
		if !isPowerOf65537(new(big.Int).Mod(n, new(big.Int).SetUint64(prime)).Uint64(), prime) {
			return false
		}
	}
	return true
}

// isPowerOf65537 reports whether rest is a power of 65537 modulo the prime.
func isPowerOf65537(rest, prime uint64) bool {
	for power := uint64(1); ; {
		if power == rest {
			return true
		}
		if power = power * 65537 % prime; power == 1 {
			return false
		}
	}
}
