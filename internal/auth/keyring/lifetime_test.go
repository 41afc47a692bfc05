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

// history returns the keyring at now, for keys that were created at these times.
func history(pairs []*keyPair, made []time.Time, now time.Time) keyList {
	var r keyList
	for i, at := range made {
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

// kids lists the Ed25519 keys of the key set, each of which its P-256 key follows.
func kids(t testing.TB, v *keyView) []string {
	t.Helper()
	var set struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal(v.jwks, &set); err != nil {
		t.Fatalf("key set %s: %v", v.jwks, err)
	}
	if len(set.Keys) != 2*len(v.accepted) {
		t.Fatalf("got %d published keys, want two for each of the %d accepted ones", len(set.Keys), len(v.accepted))
	}
	var list []string
	for i, k := range v.accepted {
		list = append(list, set.Keys[2*i].Kid)
		if got, want := set.Keys[2*i+1].Kid, k.private.ES256.ID; got != want {
			t.Errorf("got the key %s after that of %s, want its P-256 key %s", got, k.id, want)
		}
	}
	return list
}

// Key lifetimes, in minutes since the creation of the first key.
func TestKeyring_FollowsKeyLifetimes(t *testing.T) {
	pairs := []*keyPair{testPair(t, 0), testPair(t, 1), testPair(t, 2)}
	const day = 24 * 60
	for _, tc := range []struct {
		name    string
		made    []float64
		now     float64
		signing int
		live    []int // the signing key first, then the youngest
		states  []State
	}{
		{"one key, just made", []float64{0}, 0, 0, []int{0}, []State{StateSigning}},
		{"one key, of a clock that was ahead", []float64{0}, -9, 0, []int{0}, []State{StateSigning}},
		{"just rotated", []float64{0, 60}, 60, 0, []int{0, 1}, []State{StateNext, StateSigning}},
		{"in the overlap", []float64{0, 60}, 61.9, 0, []int{0, 1}, []State{StateNext, StateSigning}},
		{"after the overlap", []float64{0, 60}, 62, 1, []int{1, 0}, []State{StateSigning, StateRetired}},
		{"a day later", []float64{0, 60}, 60 + day, 1, []int{1, 0}, []State{StateSigning, StateRetired}},
		{"before the old one's end", []float64{0, 60}, 60 + 2*day + 6.9, 1, []int{1, 0}, []State{StateSigning, StateRetired}},
		{"at the old one's end", []float64{0, 60}, 60 + 2*day + 7, 1, []int{1}, []State{StateSigning, StateOld}},
		{"rotated before the first was distributed", []float64{0, 1}, 1.5, 0, []int{0, 1}, []State{StateNext, StateSigning}},
		{"twice in a moment", []float64{0, 60, 60.5}, 61, 0, []int{0, 2, 1}, []State{StateNext, StateNext, StateSigning}},
		{"the middle one has its turn", []float64{0, 60, 60.5}, 62.2, 1, []int{1, 2, 0}, []State{StateNext, StateSigning, StateRetired}},
		{"and the last one", []float64{0, 60, 60.5}, 62.5, 2, []int{2, 1, 0}, []State{StateSigning, StateRetired, StateRetired}},
		{"a clock set back behind the rotation", []float64{0, 60}, 30, 0, []int{0, 1}, []State{StateNext, StateSigning}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := func(minutes float64) time.Time { return base().Add(time.Duration(minutes * float64(time.Minute))) }
			var made []time.Time
			for _, m := range tc.made {
				made = append(made, at(m))
			}
			r := history(pairs, made, at(max(tc.now, tc.made[len(tc.made)-1])))
			v := r.viewAt(at(tc.now))
			if v.signing.id != pairs[tc.signing].id {
				t.Errorf("got another signing key than %d", tc.signing)
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
				t.Errorf("states, the youngest first (-want +got):\n%s", diff)
			}
		})
	}
}

// A key without its private half neither signs nor verifies.
func TestKeyring_IgnoresKeyWithoutPrivateHalf(t *testing.T) {
	gone, err := newPublicKeyPair(testPair(t, 0).public)
	if err != nil {
		t.Fatal(err)
	}
	r := keyList{
		{keyPair: gone, created: base(), retired: base().Add(time.Hour), revoked: base().Add(time.Hour)},
		{keyPair: testPair(t, 1), created: base().Add(time.Hour)},
	}
	now := base().Add(time.Hour)
	if v := r.viewAt(now); v.signing != r[1] || len(v.accepted) != 1 {
		t.Errorf("got %d accepted keys, want only the new one", len(v.accepted))
	}
	want := []Info{
		{ID: r[1].id, ES256ID: r[1].private.ES256.ID, State: StateSigning, Created: r[1].created},
		{ID: gone.id, State: StateRevoked, Created: base(), Revoked: base().Add(time.Hour)},
	}
	if diff := cmp.Diff(want, r.keyInfos(now)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// Invariants of any history at any time.
func TestKeyring_HoldsInvariants(t *testing.T) {
	pairs := make([]*keyPair, 8)
	for i := range pairs {
		pairs[i] = testPair(t, i)
	}
	// The maximum age of the key set that an agent uses: a minute of caching, a
	// pause of its library between two fetches, and the delay until the router
	// loads a new key.
	const staleness = 60*time.Second + 30*time.Second + 2*time.Second
	rapid.Check(t, func(rt *rapid.T) {
		made := []time.Time{base()}
		gap := rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 200_000))
		for range rapid.IntRange(0, len(pairs)-1).Draw(rt, "rotations") {
			made = append(made, made[len(made)-1].Add(time.Duration(gap.Draw(rt, "gap"))*time.Second))
		}
		now := base().Add(time.Duration(gap.Draw(rt, "after")+gap.Draw(rt, "more")) * time.Second)
		r := history(pairs, made, now)
		v := r.viewAt(now)

		if v.signing == nil || v.accepted[0] != v.signing || !v.signing.isAccepted(now) {
			rt.Fatal("got no signing key that is accepted")
		}
		before := now.Add(-staleness)
		if before.Before(base()) {
			before = base() // the first possible fetch
		}
		if known := kids(t, history(pairs, made, before).viewAt(before)); !slices.Contains(known, v.signing.id) {
			rt.Fatalf("key %s signs, but was not published %s ago: %v", v.signing.id, staleness, known)
		}
		end := now.Add(MaxCallerTokenLife)
		if later := history(pairs, made, end); !slices.Contains(kids(t, later.viewAt(end)), v.signing.id) {
			rt.Fatal("got a token of now that is not accepted for its whole lifetime")
		}
		if !v.isValidAt(now) {
			rt.Fatalf("got the state of %s valid from %s to %s", now, v.from, v.until)
		}
		other := base().Add(time.Duration(gap.Draw(rt, "other")) * time.Second)
		if w := r.viewAt(other); v.isValidAt(other) && (w.signing != v.signing || string(w.jwks) != string(v.jwks)) {
			rt.Fatalf("got the state of %s also valid at %s, where it differs", now, other)
		}
	})
}
