package auth

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewStaticKey_RejectsWeakSecrets(t *testing.T) {
	es := newMintKey(t, "k", "ES256")
	ascending := make([]byte, 32)
	for i := range ascending {
		ascending[i] = byte(3 * i)
	}
	const again, sequence, words, known, file = "again and again", "a sequence", "made of words", "which is published", "a key file"
	for secret, want := range map[string]string{
		"":                                                      "is empty",
		"short":                                                 "is 5 bytes long, HS256 needs 32 or more",
		"0123456789abcdef0123456789abcde":                       "is 31 bytes long",
		strings.Repeat("\x00", 32):                              again,
		strings.Repeat("a", 64):                                 again,
		strings.Repeat("Xk9!", 8):                               again,
		"changemechangemechangemechangeme":                      again,
		"0123456789abcdef0123456789abcdef":                      again,
		"1f3c9d77aa1f3c9d77aa1f3c9d77aa1f3c":                    again,
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
		rfc7515Secret:                                            known,
		string(rfcOctets(t, rfc7515Secret)):                      known,
		"hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg":            known,
		string(es.pem(t)):                                        file,
		string(es.der(t)):                                        file,
		"some text and then\n" + string(pkcs8PEM(t, es.private)): file,
		strings.Repeat("0123456789abcdefXYZ", 1000):              "is longer than",
	} {
		_, err := NewStaticKey("k", "HS256", []byte(secret))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: NewStaticKey = %v, want an error with %q", secret, err, want)
			continue
		}
		if len(secret) > 5 && strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "openssl rand") {
			t.Errorf("%.60q: %v, want an error without the secret and with the command that creates one", secret, err)
		}
	}
}

func TestNewStaticKey_AcceptsRandomSecrets(t *testing.T) {
	for range 2000 {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw)
		for _, secret := range [][]byte{raw, []byte(base64.StdEncoding.EncodeToString(raw)), []byte(hex.EncodeToString(raw)), []byte(rand.Text() + rand.Text())} {
			if err := checkSecret(secret); err != nil {
				t.Fatalf("%q: %v", secret, err)
			}
		}
	}
	// A word before a random secret does not weaken it.
	if err := checkSecret([]byte("production-signing-secret-" + rand.Text() + rand.Text())); err != nil {
		t.Error(err)
	}
}

func TestReadKeyFile_ChecksFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // independent of the umask
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(write("target", "s", 0o600), link); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "openlink")
	if err := os.Symlink(write("opentarget", "s", 0o644), open); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		read func(string) ([]byte, error)
		path string
		want string
		err  string
	}{
		{"a secret", ReadSecretFile, write("a", "s3", 0o600), "s3", ""},
		{"a read-only secret", ReadSecretFile, write("b", "s3", 0o400), "s3", ""},
		{"a secret with a line end", ReadSecretFile, write("c", "s3\n", 0o600), "s3", ""},
		{"a secret with a line end of Windows", ReadSecretFile, write("d", "s3\r\n", 0o600), "s3", ""},
		{"a secret with spaces, which are its own", ReadSecretFile, write("e", " s3 \n\n", 0o600), " s3 \n", ""},
		{"a mounted secret", ReadSecretFile, link, "s", ""},
		{"an empty file", ReadSecretFile, write("f", "", 0o600), "", ""},
		{"a world-readable secret", ReadSecretFile, write("g", "s", 0o644), "", "run chmod 0600"},
		{"a secret the group reads", ReadSecretFile, write("h", "s", 0o640), "", "run chmod 0600"},
		{"a world-writable secret", ReadSecretFile, write("i", "s", 0o602), "", "run chmod 0600"},
		{"a mounted world-readable secret", ReadSecretFile, open, "", "mode 0644"},
		{"a device", ReadSecretFile, os.DevNull, "", "not a regular file"},
		{"a directory", ReadSecretFile, dir, "", "not a regular file"},
		{"nothing", ReadSecretFile, filepath.Join(dir, "nothing"), "", "no such file"},
		{"a long file", ReadSecretFile, write("j", strings.Repeat("x", 20000), 0o600), "", "is 20000 bytes long"},
		{"a public key", ReadPublicKeyFile, write("k", "key\n", 0o644), "key\n", ""},
		{"a public key the group writes", ReadPublicKeyFile, write("l", "key", 0o664), "key", ""},
		{"a world-writable public key", ReadPublicKeyFile, write("m", "key", 0o646), "", "run chmod 0644"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.read(tc.path)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want one with %q", err, tc.err)
			}
			if !bytes.Equal(got, []byte(tc.want)) {
				t.Errorf("content %q, want %q", got, tc.want)
			}
		})
	}
}
