package jwk

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/auth/weakkey"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit/testjwk"
)

func TestKeySet_DropsKeysWithSameKID(t *testing.T) {
	a, b, c := testjwk.Of(t, "same", testjwk.Ed25519(t)), testjwk.Of(t, "same", testjwk.P256(t)), testjwk.Of(t, "other", testjwk.Ed25519(t))
	for _, tt := range []struct {
		name     string
		keys     []testjwk.Members
		usable   []string
		unusable []int
	}{
		{"two keys", []testjwk.Members{a, c, b}, []string{"other"}, []int{0, 2}},
		{"one key twice", []testjwk.Members{a, a, c}, []string{"other"}, []int{0, 1}},
		{"other key is unusable", []testjwk.Members{a, b.With("use", "enc"), c}, []string{"other"}, []int{1, 0}},
		{"no kids", []testjwk.Members{a.With("kid", nil), b.With("kid", nil)}, []string{"", ""}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, rejected, err := ParseSet([]byte(testjwk.SetText(t, tt.keys...)), weakkey.CheckPublic)
			if err != nil {
				t.Fatal(err)
			}
			var usable []string
			for _, k := range keys {
				usable = append(usable, k.ID)
			}
			var unusable []int
			for _, u := range rejected {
				unusable = append(unusable, u.Index)
			}
			if diff := cmp.Diff(tt.usable, usable); diff != "" {
				t.Errorf("usable kids (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.unusable, unusable); diff != "" {
				t.Errorf("indexes of unusable keys (-want +got):\n%s", diff)
			}
			if n := len(rejected); n > 0 && !errors.Is(rejected[n-1].Reason, errSharedID) {
				t.Errorf("got reason %v, want %v", rejected[n-1].Reason, errSharedID)
			}
		})
	}
}

func TestKeySet_RejectsInvalidSets(t *testing.T) {
	key := testjwk.Of(t, "", testjwk.Ed25519(t)).With("kid", nil)
	text := testjwk.Text(t, key)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "is not JSON"},
		{"HTML page", "<html>", "is not JSON"},
		{"array", "[" + text + "]", "must be an object"},
		{"key instead of a set", text, "has no member keys"},
		{"discovery document", `{"issuer":"https://idp.example","jwks_uri":"https://idp.example/keys"}`, `set jwks_url to its jwks_uri, "https://idp.example/keys"`},
		{"long discovery document", `{"jwks_uri":"` + strings.Repeat("x", 10_000) + `"}`, "it is the discovery document"},
		{"error of a gateway", `{"error":"unavailable"}`, "has no member keys"},
		{"keys is null", `{"keys":null}`, "has no member keys"},
		{"keys is an object", `{"keys":{}}`, "must be an array"},
		{"duplicate keys member", `{"keys":[],"keys":[]}`, "more than once"},
		{"keys and Keys", `{"keys":[],"Keys":[]}`, "only by case"},
		{"duplicate member in a key", `{"keys":[{"kid":"a","kid":"b"}]}`, "more than once"},
		{"duplicate unknown member in a key", `{"keys":[{"z":1,"z":1}]}`, "more than once"},
		{"101 keys", `{"keys":[` + strings.Repeat(text+",", 100) + text + `]}`, "has 101 keys, more than 100"},
		{"more than 256 KiB", `{"keys":[]}` + strings.Repeat(" ", 256<<10), "longer than 262144 bytes"},
		{"second document", `{"keys":[]}{"keys":[]}`, "is not JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, _, err := ParseSet([]byte(tt.text), weakkey.CheckPublic)
			if err == nil || keys != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %d keys, error %v; want an error with %q", len(keys), err, tt.want)
			}
			if text := fmt.Sprint(err); len(text) > 400 {
				t.Errorf("got an error of %d bytes, want at most 400", len(text))
			}
		})
	}
	for name, text := range map[string]string{
		"no keys":  `{"keys":[]}`,
		"100 keys": `{"keys":[` + strings.Repeat(text+",", 99) + text + `]}`,
		"256 KiB":  `{"keys":[]}` + strings.Repeat(" ", 256<<10-11),
	} {
		if _, _, err := ParseSet([]byte(text), weakkey.CheckPublic); err != nil {
			t.Errorf("%s: got error %v, want none", name, err)
		}
	}
}

// In any set, a key is used if and only if it is valid and its kid is unique.
func TestKeySet_UsesValidUniqueKeys(t *testing.T) {
	valid := []testjwk.Members{testjwk.Of(t, "", testjwk.Ed25519(t)), testjwk.Of(t, "", testjwk.P256(t)), testjwk.Of(t, "", testjwk.RSA(t, 2048))}
	faults := []func(testjwk.Members) testjwk.Members{
		func(m testjwk.Members) testjwk.Members { return m.With("use", "enc") },
		func(m testjwk.Members) testjwk.Members { return m.With("alg", "none") },
		func(m testjwk.Members) testjwk.Members { return m.With("d", "AA") },
		func(m testjwk.Members) testjwk.Members { return m.With("kty", "oct") },
		func(m testjwk.Members) testjwk.Members { return m.With("x", "!").With("n", "!") },
	}
	rapid.Check(t, func(rt *rapid.T) {
		var (
			set     []testjwk.Members
			isValid = map[int]bool{}
			kids    = map[string]int{}
		)
		for i := range rapid.IntRange(0, 12).Draw(rt, "keys") {
			kid := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(rt, "kid")
			key := rapid.SampledFrom(valid).Draw(rt, "key").With("kid", kid)
			fault := rapid.IntRange(-len(faults), len(faults)-1).Draw(rt, "fault")
			if fault >= 0 {
				key = faults[fault](key)
			}
			isValid[i] = fault < 0
			kids[kid]++
			set = append(set, key)
		}
		var want []string
		for i, key := range set {
			kid, _ := key["kid"].(string)
			if isValid[i] && (kid == "" || kids[kid] == 1) {
				want = append(want, fmt.Sprint(kid, key["alg"]))
			}
		}
		usable, unusable, err := ParseSet([]byte(testjwk.SetText(t, set...)), weakkey.CheckPublic)
		if err != nil || len(usable)+len(unusable) != len(set) {
			rt.Fatalf("got %d usable and %d unusable of %d keys, error %v", len(usable), len(unusable), len(set), err)
		}
		var got []string
		for _, k := range usable {
			got = append(got, k.ID+k.Algorithm)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("usable keys (-want +got):\n%s", diff)
		}
	})
}

// FuzzKeySet checks that only usable keys result from any input, and that each key
// of the set is either used or reported.
func FuzzKeySet(f *testing.F) {
	for _, key := range []crypto.PublicKey{testjwk.Ed25519(f), testjwk.P256(f), testjwk.RSA(f, 2048)} {
		m := testjwk.Of(f, "k", key)
		f.Add([]byte(testjwk.SetText(f, m, m.With("kid", "l").With("use", nil).With("key_ops", []string{"verify"}))))
		f.Add([]byte(testjwk.SetText(f, m.With("d", "AA"), m.With("kid", nil).With("alg", nil))))
	}
	f.Add([]byte(`{"keys":[null,1,{"kty":"oct","k":"AA"},{"kty":"RSA","n":"AA","e":"Aw"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		usable, unusable, err := ParseSet(data, weakkey.CheckPublic)
		if err != nil {
			if usable != nil || unusable != nil {
				t.Errorf("got keys with the error %v, want none", err)
			}
			return
		}
		var set struct {
			Keys []any `json:"keys"`
		}
		if err := strictjson.UnmarshalAllowUnknown(data, &set); err == nil && len(usable)+len(unusable) != len(set.Keys) {
			t.Errorf("got %d usable and %d unusable of %d keys", len(usable), len(unusable), len(set.Keys))
		}
		kids := map[string]bool{}
		for _, k := range usable {
			if k.ID != "" && kids[k.ID] || len(k.ID) > maxIDBytes {
				t.Errorf("got kid %q for more than one key", k.ID)
			}
			kids[k.ID] = true
			checkUsable(t, k)
		}
	})
}

// checkUsable checks that a key can verify tokens: its type, size and algorithm.
func checkUsable(t *testing.T, k *Key) {
	t.Helper()
	switch key := k.Public.(type) {
	case ed25519.PublicKey:
		if k.Algorithm != "EdDSA" || len(key) != ed25519.PublicKeySize {
			t.Errorf("got an Ed25519 key of %d bytes for %s", len(key), k.Algorithm)
		}
	case *ecdsa.PublicKey:
		if _, err := key.Bytes(); err != nil || k.Algorithm != "ES256" || key.Curve != elliptic.P256() {
			t.Errorf("got a key on %s for %s: %v", key.Params().Name, k.Algorithm, err)
		}
	case *rsa.PublicKey:
		if size := key.N.BitLen(); k.Algorithm != "RS256" || size < 2048 || size > 8192 || key.E < 65537 || key.E%2 == 0 {
			t.Errorf("got an RSA key of %d bits with exponent %d for %s", size, key.E, k.Algorithm)
		}
	default:
		t.Errorf("got a key of type %T", k.Public)
	}
	if !equalKeys(k.Public, k.Public) {
		t.Errorf("got a %T that is not equal to itself, want a comparable key", k.Public)
	}
}
