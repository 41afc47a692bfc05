package weakkey_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/auth/weakkey"
)

// rfc7515Secret is the key of RFC 7515, appendix A.1.
const rfc7515Secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"

func TestCheckSecret_RejectsWeakSecrets(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encodePEM := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	ascending := make([]byte, 32)
	for i := range ascending {
		ascending[i] = byte(3 * i)
	}
	const repetition, sequence, words, published, keyFile = "repeats a short text", "a sequence", "made of words", "which is published", "a key file"
	for secret, want := range map[string]string{
		"":                                                      "is empty",
		"short":                                                 "is 5 bytes long, HS256 needs 32 or more",
		"0123456789abcdef0123456789abcde":                       "is 31 bytes long",
		strings.Repeat("\x00", 32):                              repetition,
		strings.Repeat("a", 64):                                 repetition,
		strings.Repeat("Xk9!", 8):                               repetition,
		"changemechangemechangemechangeme":                      repetition,
		"0123456789abcdef0123456789abcdef":                      repetition,
		"1f3c9d77aa1f3c9d77aa1f3c9d77aa1f3c":                    repetition,
		"0123456789abcdefghijklmnopqrstuvwxyz":                  sequence,
		"abcdefghijklmnopqrstuvwxyz123456":                      sequence,
		"ZYXWVUTSRQPONMLKJIHGFEDCBA987654":                      sequence,
		string(ascending):                                       sequence,
		"q7q7q77q7qqq7q7q7q7qqqq7q7q7qq77qq77":                  "fewer than 10 different bytes",
		"a-string-secret-at-least-256-bits-long":                words,
		"a-string-secret-at-least-256-bits-long-please-change":  words,
		"A-String-Secret-At-Least-256-Bits-Long":                words,
		"your-256-bit-secret-your-256-bit-password":             words,
		"changeme-changeme-please-changeme-now!":                words,
		"my-very-long-jwt-secret-key-for-signing-tokens":        words,
		"supersecretpasswordthatshouldbechanged":                words,
		"qwertyuiopasdfghjklzxcvbnm1234567890":                  words,
		"replace-this-placeholder-in-production":                words,
		"the quick brown fox jumps over the lazy dog":           words,
		"Correct-Horse-Battery-Staple-Goes-To-The-Market-Today": words,
		"it was the best of times, it was the worst of times":   words,
		"ofundodomarestavaescuroeninguemsabiaoporque":           words,
		"La vida es sueno y los suenos, suenos son siempre":     words,
		"WirSindDieGuterRitterUndWirReitenMorgenFort2024":       words,
		"we hold these truths to be self-evident, that all men are created equal, that they are endowed by their creator": words,
		rfc7515Secret:                                              published,
		string(decodeBase64(t, rfc7515Secret)):                     published,
		"hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg":              published,
		encodePEM("PUBLIC KEY", public):                            keyFile,
		string(public):                                             keyFile,
		"some text and then\n" + encodePEM("PRIVATE KEY", private): keyFile,
		strings.Repeat("0123456789abcdefXYZ", 1000):                "is longer than",
	} {
		err := weakkey.CheckSecret([]byte(secret))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: CheckSecret = %v, want an error with %q", secret, err, want)
			continue
		}
		if len(secret) > 5 && strings.Contains(err.Error(), secret) {
			t.Errorf("%.60q: CheckSecret = %v, want an error without the secret", secret, err)
		}
	}
}

func TestCheckSecret_AcceptsRandomSecrets(t *testing.T) {
	for range 2000 {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw)
		for _, secret := range [][]byte{raw, []byte(base64.StdEncoding.EncodeToString(raw)), []byte(hex.EncodeToString(raw)), []byte(rand.Text() + rand.Text())} {
			if err := weakkey.CheckSecret(secret); err != nil {
				t.Fatalf("%q: CheckSecret = %v, want nil for a random secret", secret, err)
			}
		}
	}
	// Words before a random secret do not weaken it.
	if err := weakkey.CheckSecret([]byte("production-signing-secret-" + rand.Text() + rand.Text())); err != nil {
		t.Errorf("words before a random secret: CheckSecret = %v, want nil", err)
	}
}
