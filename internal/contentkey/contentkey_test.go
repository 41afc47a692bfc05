package contentkey

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// keyText returns the line of a key whose bytes count up from n.
func keyText(n byte) string {
	secret := make([]byte, keySize)
	for i := range secret {
		secret[i] = n + byte(i)
	}
	return base64.StdEncoding.EncodeToString(secret) + "\n"
}

func parseKeyring(t *testing.T, text string) *Keyring {
	t.Helper()
	r, err := Parse(text, "the test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeyring_OpensWithEveryKeyOfTheRing(t *testing.T) {
	associated, content := []byte("here"), []byte(`{"text":"hello"}`)
	old, rotated, other := parseKeyring(t, keyText(1)), parseKeyring(t, "# comment\n\n"+keyText(2)+keyText(1)), parseKeyring(t, keyText(2))
	sealed := old.Seal(content, associated)
	if bytes.Contains(sealed, []byte("hello")) {
		t.Errorf("sealed is %q", sealed)
	}
	for name, ring := range map[string]*Keyring{"the same process": old, "the next process": parseKeyring(t, keyText(1)), "rotated": rotated} {
		if got, err := ring.Open(sealed, associated); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: got %q and error %v, want the content", name, got, err)
		}
	}
	_, err := other.Open(sealed, associated)
	if !IsUnknownKey(err) || !strings.Contains(err.Error(), old.CurrentID()) || !strings.Contains(err.Error(), "the test") {
		t.Errorf("got error %v, want one that names the missing key and the source", err)
	}
	if !old.SealedByCurrent(sealed) || rotated.SealedByCurrent(sealed) || rotated.SealedByCurrent(nil) {
		t.Error("only the first key of a ring is the current one")
	}
}

func TestKey_SealsAndIsWrapped(t *testing.T) {
	associated, content := []byte("here"), []byte(`{"text":"hello"}`)
	ring, key := parseKeyring(t, keyText(1)), NewKey()
	sealed := key.Seal(content, associated)
	unwrapped, err := ring.Open(ring.Seal(key.Marshal(), associated), associated)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKey(unwrapped)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := KeyOf(sealed); !ok || id != key.ID() || id != again.ID() {
		t.Errorf("got key %s of the content, want %s", id, key.ID())
	}
	if got, err := again.Open(sealed, associated); err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %q and error %v, want the content", got, err)
	}
}

func TestOpen_RejectsEveryChange(t *testing.T) {
	associated, content := []byte("here"), []byte("hello")
	ring, key := parseKeyring(t, keyText(1)), NewKey()
	for name, c := range map[string]struct {
		sealed []byte
		open   func(sealed, associated []byte) ([]byte, error)
	}{
		"by master key": {ring.Seal(content, associated), ring.Open},
		"by data key":   {key.Seal(content, associated), key.Open},
	} {
		if _, err := c.open(c.sealed, []byte("there")); err == nil {
			t.Errorf("%s: opened with other associated data, want an error", name)
		}
		for i := range c.sealed {
			if _, err := c.open(c.sealed[:i], associated); err == nil {
				t.Errorf("%s: opened with only the first %d bytes, want an error", name, i)
			}
			changed := bytes.Clone(c.sealed)
			changed[i] ^= 4
			if _, err := c.open(changed, associated); err == nil {
				t.Errorf("%s: opened with byte %d changed, want an error", name, i)
			}
		}
	}
}

func TestParse_RejectsBadKeys(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":    {"# no key\n", "contains no key"},
		"short":      {keyText(1) + "c2hvcnQ=\n", "line 2"},
		"not base64": {"hello\n", "line 1"},
		"zeros":      {base64.StdEncoding.EncodeToString(make([]byte, keySize)), "not random"},
	} {
		_, err := Parse(c.text, "variable X")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "variable X") ||
			!strings.Contains(err.Error(), "openssl rand -base64 32") {
			t.Errorf("%s: got error %v, want one with %q, the source and the fix", name, err, c.want)
		}
	}
}

func TestOpenOrCreate_KeepsItsKey(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenOrCreate(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenOrCreate(dir)
	if err != nil || first.CurrentID() != second.CurrentID() {
		t.Errorf("got key %v and error %v, want the first one", second, err)
	}
	path := filepath.Join(dir, FileName)
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v and error %v, want 0600", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOrCreate(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got error %v for a file that others may read, want one with the fix", err)
	}
}
