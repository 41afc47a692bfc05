package auth

import (
	"crypto/rsa"
	"fmt"
	"math"
	"math/big"
)

const (
	minRSABits     = 2048
	maxRSABits     = 8192
	minRSAExponent = 65537
)

// rsaKey reads the modulus and the exponent, as unsigned big-endian numbers
// (RFC 7518, section 6.3.1). Leading zeros are let pass, although they should
// not be there: some libraries write a sign.
func (k *publicJWK) rsaKey() (any, error) {
	modulus, err := decodeBase64URL("n", k.Modulus)
	if err != nil {
		return nil, err
	}
	exponent, err := decodeBase64URL("e", k.Exponent)
	if err != nil {
		return nil, err
	}
	e := new(big.Int).SetBytes(exponent)
	if e.Cmp(big.NewInt(math.MaxInt32)) > 0 {
		return nil, fmt.Errorf("its exponent is not an odd number from %d to %d", minRSAExponent, math.MaxInt32)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(modulus), E: int(e.Int64())}, nil
}

// isROCAModulus reports whether a modulus was made by chips whose primes are powers
// of 65537 modulo the product of the small primes, plus a multiple of it. Such
// keys can be factored ("The Return of Coppersmith's Attack", section 2.1). The
// modulus is then itself a power of 65537 modulo each of these primes; among
// other moduli less than one in 2^27 is.
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
