package strictjwt

import (
	"crypto"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/weakkey"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
)

// vectorFile is a file of signature vectors. Each group has one key or a key set.
type vectorFile struct {
	Groups []vectorGroup `json:"testGroups"`
}

type vectorGroup struct {
	Comment string          `json:"comment"`
	Public  json.RawMessage `json:"public"`
	Private json.RawMessage `json:"private"` // read for a shared secret, which has no public key
	Tests   []vector        `json:"tests"`
}

type vector struct {
	ID      int             `json:"tcId"`
	Comment string          `json:"comment"`
	JWS     json.RawMessage `json:"jws"`
	Result  string          `json:"result"`
}

// token returns the token in compact serialization, or the JSON text of the JSON serialization.
func (v *vector) token(t *testing.T) string {
	t.Helper()
	if v.JWS[0] == '{' {
		return string(v.JWS)
	}
	var text string
	if err := strictjson.Unmarshal(v.JWS, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// key returns the public key, the key set or the shared secret of the group.
func (g *vectorGroup) key() json.RawMessage {
	if len(g.Public) > 0 {
		return g.Public
	}
	return g.Private
}

// isSet reports whether the group has a set of keys.
func (g *vectorGroup) isSet(t *testing.T) bool {
	t.Helper()
	var set struct {
		Keys json.RawMessage `json:"keys"`
	}
	if err := strictjson.UnmarshalAllowUnknown(g.key(), &set); err != nil {
		t.Fatal(err)
	}
	return len(set.Keys) > 0
}

// signatureGroups returns the groups of a file about signatures, either those with
// a key set or those with a key.
func signatureGroups(t *testing.T, name string, sets bool) []vectorGroup {
	t.Helper()
	data, err := os.ReadFile(testkit.Shared(t, "corpora", "wycheproof", name))
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := strictjson.UnmarshalAllowUnknown(data, &f); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(f.Groups, func(g vectorGroup) bool {
		return len(g.Tests) == 0 || len(g.Tests[0].JWS) == 0 || g.isSet(t) != sets
	})
}

// vectorKey is the JSON Web Key of a group.
type vectorKey struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Algorithm  *string  `json:"alg"`
	Use        *string  `json:"use"`
	Operations []string `json:"key_ops"`
	Secret     string   `json:"k"`
}

func parseVectorKey(t *testing.T, data []byte) (k vectorKey) {
	t.Helper()
	if err := strictjson.UnmarshalAllowUnknown(data, &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// secret returns a shared secret, which a key set must not contain.
func (k *vectorKey) secret(t *testing.T) (Key, error) {
	t.Helper()
	secret, err := decodeSegment("k", k.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if k.Algorithm != nil && *k.Algorithm != "HS256" || k.Use != nil && *k.Use != "sig" ||
		k.Operations != nil && !slices.Contains(k.Operations, "verify") {
		err = errors.New("not for verification with HS256")
	}
	return Key{"HS256", secret}, err
}

// decodeVectorKey restricts a key to its declared algorithm. It does not reject
// published keys or weak secrets.
func decodeVectorKey(t *testing.T, data []byte) (Key, error) {
	t.Helper()
	if k := parseVectorKey(t, data); k.Type == "oct" {
		return k.secret(t)
	}
	usable, unusable, err := jwk.ParseSet(slices.Concat([]byte(`{"keys":[`), data, []byte("]}")), func(public crypto.PublicKey) error {
		if err := weakkey.CheckPublic(public); err != nil && !strings.Contains(err.Error(), "whose private part is published") {
			return err
		}
		return nil
	})
	switch {
	case err != nil:
		return Key{}, err
	case len(usable) == 0:
		return Key{}, unusable[0].Reason
	}
	return Key{usable[0].Algorithm, usable[0].Public}, nil
}

// vectorCounts counts the results for the vectors of a file.
type vectorCounts struct{ accepted, rejected, otherAlgorithm, exceptions int }

func (c *vectorCounts) add(valid, supported, exception bool) {
	switch {
	case exception:
		c.exceptions++
	case valid && supported:
		c.accepted++
	case valid:
		c.otherAlgorithm++
	default:
		c.rejected++
	}
}

// A valid signature vector is accepted if its algorithm is supported. All others are rejected.
// Claims are not checked.
func TestVerifySignature_Wycheproof(t *testing.T) {
	for file, tt := range map[string]struct {
		want       vectorCounts
		exceptions map[int]string // incorrect labels, with the reason
	}{
		"json_web_signature_test.json": {vectorCounts{18, 353, 26, 4}, map[int]string{
			367: `labelled invalid because of padding, but has none: identical to 357, which is valid`,
			370: `labelled invalid because of padding, but has none: identical to 357, which is valid`,
			372: `labelled valid with a "?" in its header, which is not base64url`,
			373: `labelled valid with a "?" in its payload, which is not base64url`,
		}},
		"json_web_crypto_test.json": {vectorCounts{3, 43, 0, 0}, nil},
	} {
		t.Run(file, func(t *testing.T) {
			var got vectorCounts
			for _, g := range signatureGroups(t, file, false) {
				k := parseVectorKey(t, g.key())
				supported := k.Algorithm != nil && slices.Contains(Algorithms(), *k.Algorithm)
				key, unusable := decodeVectorKey(t, g.key())
				for _, v := range g.Tests {
					err := unusable
					if err == nil {
						err = verifySignature(key, v.token(t))
					}
					_, exception := tt.exceptions[v.ID]
					valid := v.Result == "valid"
					if accepted := err == nil; accepted != (valid && supported != exception || !valid && exception) {
						t.Errorf("vector %d, %s (%s: %s), exception %v: got error %v", v.ID, v.Result, g.Comment, v.Comment, exception, err)
					}
					got.add(valid, supported, exception)
				}
			}
			t.Logf("%+v", got)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// A key without a declared algorithm verifies the supported algorithm of its type only. Tokens
// that the same key signed with another algorithm are rejected.
func TestVerifySignature_WycheproofOtherAlgorithms(t *testing.T) {
	rejected := 0
	for _, g := range signatureGroups(t, "json_web_signature_test.json", false) {
		k := parseVectorKey(t, g.key())
		if k.Type != "RSA" || k.Algorithm == nil || *k.Algorithm == "RS256" {
			continue
		}
		members := map[string]json.RawMessage{}
		if err := strictjson.Unmarshal(g.key(), &members); err != nil {
			t.Fatal(err)
		}
		delete(members, "alg")
		undeclared, err := strictjson.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		key, err := decodeVectorKey(t, undeclared)
		if err != nil {
			t.Fatalf("%s: %v", g.Comment, err)
		}
		for _, v := range g.Tests {
			if v.Result != "valid" {
				continue // some are invalid only because their algorithm is RS256
			}
			rejected++
			if err := verifySignature(key, v.token(t)); err == nil {
				t.Errorf("vector %d (%s: %s): got no error, want one", v.ID, g.Comment, v.Comment)
			}
		}
	}
	t.Logf("%d rejected", rejected)
	if rejected == 0 {
		t.Error("got no vector with another algorithm, want some")
	}
}

// The key set vectors, parsed like the key set of a provider. Shared secrets are
// never used, so sets of them accept no token.
func TestKeySet_Wycheproof(t *testing.T) {
	for file, tt := range map[string]struct {
		want    vectorCounts
		secrets []int // valid, but signed with a shared secret
	}{
		"json_web_key_test.json":    {vectorCounts{1, 21, 4, 0}, []int{2, 13, 14, 15}},
		"json_web_crypto_test.json": {vectorCounts{0, 2, 1, 0}, []int{48}},
	} {
		t.Run(file, func(t *testing.T) {
			var got vectorCounts
			for _, g := range signatureGroups(t, file, true) {
				keys, unusable, err := jwk.ParseSet(g.key(), weakkey.CheckPublic)
				if err != nil || len(keys)+len(unusable) == 0 {
					t.Fatalf("%s: got %d usable and %d unusable keys, error %v; want keys", g.Comment, len(keys), len(unusable), err)
				}
				for _, v := range g.Tests {
					accepted := acceptedBySet(keys, v.token(t))
					valid, secret := v.Result == "valid", slices.Contains(tt.secrets, v.ID)
					if accepted != (valid && !secret) || secret && !valid {
						t.Errorf("vector %d, %s (%s: %s), shared secret %v: got accepted %v", v.ID, v.Result, g.Comment, v.Comment, secret, accepted)
					}
					got.add(valid, !secret, false)
				}
			}
			t.Logf("%+v", got)
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// acceptedBySet verifies a token with the key that has its kid or, if the token has no kid,
// with the only key for its algorithm.
func acceptedBySet(keys []*jwk.Key, token string) bool {
	c, err := parseCompact(token)
	if err != nil {
		return false
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k *jwk.Key) bool {
		return c.header.KeyID != "" && k.ID != c.header.KeyID || c.header.KeyID == "" && k.Algorithm != c.header.Algorithm
	})
	return len(keys) == 1 && verifySignature(Key{keys[0].Algorithm, keys[0].Public}, token) == nil
}
