package keyring

import (
	"crypto/ed25519"
	"testing"

	"pgregory.net/rapid"
)

func TestSign_SignsForPurpose(t *testing.T) {
	s := newRing(t)
	member, public := ed25519Member(t, s)
	if s.KeyID() != member["kid"] {
		t.Errorf("KeyID = %q, want %q as in the key set", s.KeyID(), member["kid"])
	}
	data := []byte("head 17")
	_, sig := s.Sign("audit head", data)
	if !ed25519.Verify(public, []byte("caprouter/audit head\x00head 17"), sig) {
		t.Error("got another signature, want one over the purpose and the data")
	}
	changed := append([]byte{}, sig...)
	changed[0] ^= 1
	for _, tc := range []struct {
		name           string
		purpose, keyID string
		data, sig      []byte
		want           bool
	}{
		{"as signed", "audit head", s.KeyID(), data, sig, true},
		{"other data", "audit head", s.KeyID(), []byte("head 18"), sig, false},
		{"no data", "audit head", s.KeyID(), nil, sig, false},
		{"another purpose", "audit", s.KeyID(), data, sig, false},
		{"end of the purpose moved into the data", "audit", s.KeyID(), []byte(" head\x00head 17"), sig, false},
		{"another key id", "audit head", newRing(t).KeyID(), data, sig, false},
		{"no key id", "audit head", "", data, sig, false},
		{"changed signature", "audit head", s.KeyID(), data, changed, false},
		{"half of the signature", "audit head", s.KeyID(), data, sig[:32], false},
		{"no signature", "audit head", s.KeyID(), data, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := s.Verify(tc.purpose, tc.keyID, tc.data, tc.sig); got != tc.want {
				t.Errorf("Verify = %v, want %v", got, tc.want)
			}
		})
	}
	if newRing(t).Verify("audit head", s.KeyID(), data, sig) {
		t.Error("another key: Verify = true, want false")
	}
}

func TestSign_RejectsNULInPurpose(t *testing.T) {
	s := newRing(t)
	defer func() {
		if recover() == nil {
			t.Error("purpose with a NUL: got no panic, want one")
		}
	}()
	s.Sign("a\x00b", nil)
}

func TestSign_SeparatesPurposes(t *testing.T) {
	s := newRing(t)
	purpose := rapid.StringMatching(`[a-z/ ]{0,8}`)
	data := rapid.SliceOfN(rapid.Byte(), 0, 16)
	rapid.Check(t, func(rt *rapid.T) {
		p, q := purpose.Draw(rt, "p"), purpose.Draw(rt, "q")
		d, e := data.Draw(rt, "d"), data.Draw(rt, "e")
		same := p == q && string(d) == string(e)
		if got := s.Verify(q, s.KeyID(), e, signatureOf(s, p, string(d))); got != same {
			rt.Fatalf("Verify(%q, %x) of Sign(%q, %x) = %v, want %v", q, e, p, d, got, same)
		}
	})
}

func signatureOf(s *Ring, purpose, data string) []byte {
	_, sig := s.Sign(purpose, []byte(data))
	return sig
}
