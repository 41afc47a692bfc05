package weakkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

const (
	minRSABits     = 2048
	maxRSABits     = 8192
	minRSAExponent = 65537
)

// CheckPublic returns an error if a public key is not an Ed25519, P-256 or RSA key, if
// it is weak or malformed, or if its private half is published.
func CheckPublic(public crypto.PublicKey) error {
	var err error
	switch key := public.(type) {
	case ed25519.PublicKey:
		err = checkEd25519(key)
	case *ecdsa.PublicKey:
		err = checkP256(key)
	case *rsa.PublicKey:
		err = checkRSA(key)
	default:
		return fmt.Errorf("it is a %T, not an Ed25519, P-256 or RSA key", public)
	}
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return errors.New("it cannot be encoded")
	}
	digest := sha256.Sum256(der)
	if source, ok := publishedKeys()[hex.EncodeToString(digest[:])]; ok {
		return fmt.Errorf("it is the key of %s, whose private part is published", source)
	}
	return nil
}

func checkP256(key *ecdsa.PublicKey) error {
	if key.Curve != elliptic.P256() {
		return errors.New("its curve is not P-256")
	}
	if _, err := key.ECDH(); err != nil { // checks that the point is on the curve
		return errors.New("it is no point on the curve")
	}
	return nil
}

func checkRSA(key *rsa.PublicKey) error {
	switch bits := key.N.BitLen(); {
	case bits < minRSABits || bits > maxRSABits:
		return fmt.Errorf("its modulus has %d bits, not %d to %d", bits, minRSABits, maxRSABits)
	case key.N.Bit(0) == 0:
		return errors.New("its modulus is even")
	case key.E%2 == 0 || key.E < minRSAExponent || key.E > math.MaxInt32:
		return fmt.Errorf("its exponent is not an odd number from %d to %d", minRSAExponent, math.MaxInt32)
	case isROCAModulus(key.N):
		return errors.New("its private part can be computed from it (CVE-2017-15361): make a new key")
	}
	return nil
}

// checkEd25519 returns an error if the key is not a point of the curve, or is a
// point of small order: for such a key, signatures can be made without a private
// key.
func checkEd25519(key ed25519.PublicKey) error {
	if len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("it is %d bytes long, not %d", len(key), ed25519.PublicKeySize)
	}
	le := slices.Clone(key)
	le[len(le)-1] &= 0x7f // the sign bit of x
	slices.Reverse(le)
	y := new(big.Int).SetBytes(le)
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	if y.Cmp(p) >= 0 {
		return errors.New("it is no point on the curve")
	}
	one := big.NewInt(1)
	// -x² + y² = 1 + dx²y² (RFC 8032, section 5.1): x² = (y²-1) / (dy²+1).
	yy := new(big.Int).Mul(y, y)
	d := new(big.Int).Mul(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), p))
	u := new(big.Int).Sub(yy, one)
	v := new(big.Int).Mod(new(big.Int).Add(new(big.Int).Mul(d, yy), one), p)
	xx := new(big.Int).Mod(new(big.Int).Mul(u, new(big.Int).ModInverse(v, p)), p)
	if big.Jacobi(xx, p) < 0 {
		return errors.New("it is no point on the curve")
	}
	// The orders 1 and 2 have x = 0, the order 4 has y = 0, and the doubles of
	// those of order 8 have y = 0, which is x² = -y².
	minusYY := new(big.Int).Mod(new(big.Int).Neg(yy), p)
	if xx.Sign() == 0 || y.Sign() == 0 || xx.Cmp(minusYY) == 0 {
		return errors.New("it is a point of small order: signatures could be forged without a private key")
	}
	return nil
}
