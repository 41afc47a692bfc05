package keyring

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// base is the creation time of the first key.
func base() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func testPair(t testing.TB, n int) *keyPair {
	t.Helper()
	seed := sha256.Sum256(fmt.Appendf(nil, "key %d of the tests", n))
	pair, err := newKeyPair(ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// keysCreatedAt returns the keys at now, if they were created at these times.
func keysCreatedAt(pairs []*keyPair, created []time.Time, now time.Time) keyList {
	var r keyList
	for i, at := range created {
		if at.After(now) && i > 0 {
			break
		}
		if i > 0 {
			r[i-1].retired = at
		}
		r = append(r, &signingKey{keyPair: pairs[i], created: at})
	}
	r.sortByAge()
	return r
}

// kids returns the ids of the Ed25519 keys in the key set, in order. The P-256 key of each must
// follow it.
func kids(t testing.TB, v *keyView) []string {
	t.Helper()
	var set struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal(v.jwks, &set); err != nil {
		t.Fatalf("key set %s: %v", v.jwks, err)
	}
	if len(set.Keys) != 2*len(v.accepted) {
		t.Fatalf("got %d published keys, want 2 for each of %d accepted keys", len(set.Keys), len(v.accepted))
	}
	var list []string
	for i, k := range v.accepted {
		list = append(list, set.Keys[2*i].Kid)
		if got, want := set.Keys[2*i+1].Kid, k.private.ES256.ID; got != want {
			t.Errorf("got key %s after key %s, want its P-256 key %s", got, k.id, want)
		}
	}
	return list
}

// The times are minutes since the creation of the first key.
func TestKeyring_FollowsKeyLifetimes(t *testing.T) {
	pairs := []*keyPair{testPair(t, 0), testPair(t, 1), testPair(t, 2)}
	const day = 24 * 60
	for _, tc := range []struct {
		name    string
		created []float64
		now     float64
		signing int
		live    []int // the signing key, then the others, newest first
		states  []State
	}{
		{"one new key", []float64{0}, 0, 0, []int{0}, []State{StateSigning}},
		{"one key, created by a clock that was ahead", []float64{0}, -9, 0, []int{0}, []State{StateSigning}},
		{"just rotated", []float64{0, 60}, 60, 0, []int{0, 1}, []State{StateNext, StateSigning}},
		{"during the overlap", []float64{0, 60}, 61.9, 0, []int{0, 1}, []State{StateNext, StateSigning}},
		{"after the overlap", []float64{0, 60}, 62, 1, []int{1, 0}, []State{StateSigning, StateRetired}},
		{"a day after the rotation", []float64{0, 60}, 60 + day, 1, []int{1, 0}, []State{StateSigning, StateRetired}},
		{"before the end of the retired key", []float64{0, 60}, 60 + 2*day + 6.9, 1, []int{1, 0}, []State{StateSigning, StateRetired}},
		{"at the end of the retired key", []float64{0, 60}, 60 + 2*day + 7, 1, []int{1}, []State{StateSigning, StateOld}},
		{"rotated during the overlap of the first key", []float64{0, 1}, 1.5, 0, []int{0, 1}, []State{StateNext, StateSigning}},
		{"rotated twice within the overlap", []float64{0, 60, 60.5}, 61, 0, []int{0, 2, 1}, []State{StateNext, StateNext, StateSigning}},
		{"second of three keys signs", []float64{0, 60, 60.5}, 62.2, 1, []int{1, 2, 0}, []State{StateNext, StateSigning, StateRetired}},
		{"third of three keys signs", []float64{0, 60, 60.5}, 62.5, 2, []int{2, 1, 0}, []State{StateSigning, StateRetired, StateRetired}},
		{"clock set back before the rotation", []float64{0, 60}, 30, 0, []int{0, 1}, []State{StateNext, StateSigning}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := func(minutes float64) time.Time { return base().Add(time.Duration(minutes * float64(time.Minute))) }
			var created []time.Time
			for _, m := range tc.created {
				created = append(created, at(m))
			}
			r := keysCreatedAt(pairs, created, at(max(tc.now, tc.created[len(tc.created)-1])))
			v := r.viewAt(at(tc.now))
			if v.signing.id != pairs[tc.signing].id {
				t.Errorf("got signing key %s, want key %d, %s", v.signing.id, tc.signing, pairs[tc.signing].id)
			}
			var want []string
			for _, i := range tc.live {
				want = append(want, pairs[i].id)
			}
			if diff := cmp.Diff(want, kids(t, v)); diff != "" {
				t.Errorf("key set (-want +got):\n%s", diff)
			}
			var states []State
			for _, info := range r.keyInfos(at(tc.now)) {
				states = append(states, info.State)
			}
			if diff := cmp.Diff(tc.states, states); diff != "" {
				t.Errorf("states, newest key first (-want +got):\n%s", diff)
			}
		})
	}
}

// A key whose private key was removed neither signs nor verifies tokens.
func TestKeyring_IgnoresPublicOnlyKey(t *testing.T) {
	publicOnly, err := newPublicKeyPair(testPair(t, 0).public)
	if err != nil {
		t.Fatal(err)
	}
	r := keyList{
		{keyPair: publicOnly, created: base(), retired: base().Add(time.Hour), revoked: base().Add(time.Hour)},
		{keyPair: testPair(t, 1), created: base().Add(time.Hour)},
	}
	now := base().Add(time.Hour)
	if v := r.viewAt(now); v.signing != r[1] || len(v.accepted) != 1 {
		t.Errorf("got %d accepted keys, want only the new one", len(v.accepted))
	}
	want := []Info{
		{ID: r[1].id, ES256ID: r[1].private.ES256.ID, State: StateSigning, Created: r[1].created},
		{ID: publicOnly.id, State: StateRevoked, Created: base(), Revoked: base().Add(time.Hour)},
	}
	if diff := cmp.Diff(want, r.keyInfos(now)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// The invariants hold for any creation times of keys, and at any time.
func TestKeyring_HoldsInvariants(t *testing.T) {
	pairs := make([]*keyPair, 8)
	for i := range pairs {
		pairs[i] = testPair(t, i)
	}
	// staleness is the maximum age of the key set that an agent uses: a minute of caching, the
	// pause of its library between two fetches, and the delay until the router loads a new key.
	const staleness = 60*time.Second + 30*time.Second + 2*time.Second
	rapid.Check(t, func(rt *rapid.T) {
		created := []time.Time{base()}
		gap := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 200_000))
		for range rapid.IntRange(0, len(pairs)-1).Draw(rt, "rotations") {
			created = append(created, created[len(created)-1].Add(time.Duration(gap.Draw(rt, "gap"))*time.Second))
		}
		now := base().Add(time.Duration(gap.Draw(rt, "after")+gap.Draw(rt, "more")) * time.Second)
		r := keysCreatedAt(pairs, created, now)
		v := r.viewAt(now)

		if v.signing == nil || v.accepted[0] != v.signing || !v.signing.isAccepted(now) {
			rt.Fatal("got no signing key that is accepted")
		}
		before := now.Add(-staleness)
		if before.Before(base()) {
			before = base() // the first possible fetch
		}
		if known := kids(t, keysCreatedAt(pairs, created, before).viewAt(before)); !slices.Contains(known, v.signing.id) {
			rt.Fatalf("got signing key %s, want one that was published %s ago: %v", v.signing.id, staleness, known)
		}
		end := now.Add(MaxCallerTokenLife)
		if later := keysCreatedAt(pairs, created, end); !slices.Contains(kids(t, later.viewAt(end)), v.signing.id) {
			rt.Fatal("got a signing key that is not accepted until the tokens it signs now expire")
		}
		if !v.isValidAt(now) {
			rt.Fatalf("got a view of %s that is valid from %s to %s", now, v.from, v.until)
		}
		other := base().Add(time.Duration(gap.Draw(rt, "other")) * time.Second)
		if w := r.viewAt(other); v.isValidAt(other) && (w.signing != v.signing || string(w.jwks) != string(v.jwks)) {
			rt.Fatalf("got a view of %s that is valid at %s, where the keys differ", now, other)
		}
	})
}
