package sharedkeys

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/auth/keyring"
)

func newAnnouncement(issued time.Time, names ...string) *announcement {
	a := &announcement{Issued: issued}
	for _, n := range names {
		a.Keys = append(a.Keys, keyring.PublicKey{Signing: []byte(n)})
	}
	return a
}

func (p peerSet) names(now time.Time) string {
	var list []string
	for _, k := range p.keys(now) {
		list = append(list, string(k.Signing))
	}
	return strings.Join(list, " ")
}

func TestPeerSet_AcceptsLatestRow(t *testing.T) {
	now := time.Unix(1e9, 0)
	p := peerSet{}
	add := func(name string, a *announcement) error {
		t.Helper()
		return p.add(name, a, now)
	}
	stolen := newAnnouncement(now.Add(-time.Minute), "a1", "a2")
	if err := errors.Join(add("b", newAnnouncement(now, "b1")), add("a", stolen), add("a", newAnnouncement(now, "a2"))); err != nil {
		t.Fatal(err)
	}
	if err := add("a", stolen); !errors.Is(err, errReplayed) {
		t.Errorf("an earlier row: got error %v, want it rejected", err)
	}
	if err := add("c", newAnnouncement(now.Add(clockLeeway+time.Second), "c1")); err == nil || !strings.Contains(err.Error(), "clocks") {
		t.Errorf("a row of the future: got error %v, want one about the clocks", err)
	}
	if got := p.names(now); got != "a2 b1" {
		t.Errorf("got keys %s, want a2 b1", got)
	}
	if err := add("b", newAnnouncement(now.Add(time.Minute), "b1")); err != nil {
		t.Fatal(err)
	}
	if got := p.names(now.Add(keyLife)); got != "b1" {
		t.Errorf("got keys %s after an hour, want b1", got)
	}
	if err := add("a", stolen); !errors.Is(err, errReplayed) {
		t.Errorf("an earlier row after the keys have expired: got error %v, want it rejected", err)
	}
}

// The clocks of two replicas were ahead, for example because they share a host, and are correct
// again.
func TestPeerSet_AcceptsRowsAfterClockWasSetBack(t *testing.T) {
	now := time.Unix(1e9, 0)
	ahead := now.Add(6 * time.Hour)
	p := peerSet{}
	if err := errors.Join(p.add("a", newAnnouncement(ahead, "a1"), ahead), p.add("a", newAnnouncement(now, "a2"), now)); err != nil {
		t.Errorf("the first row after the step: got error %v, want it accepted", err)
	}
	if err := p.add("a", newAnnouncement(now.Add(-time.Minute), "a1"), now); !errors.Is(err, errReplayed) {
		t.Errorf("an earlier row: got error %v, want it rejected", err)
	}
	if got := p.names(now); got != "a2" {
		t.Errorf("got keys %s, want a2", got)
	}
}

func TestPeerSet_RejectsKeysMissingInRunningReplica(t *testing.T) {
	now := time.Unix(1e9, 0)
	with := func(stopped bool, age time.Duration, ids ...string) *announcement {
		return &announcement{Issued: now.Add(-age), Stopped: stopped, ContentKeys: ids}
	}
	for _, tt := range []struct {
		name string
		peer *announcement
		own  []string
		want string
	}{
		{"same key", with(false, 0, "1"), []string{"1"}, ""},
		{"next key in a second line", with(false, 0, "1"), []string{"1", "2"}, ""},
		{"next key first, known", with(false, 0, "1", "2"), []string{"2", "1"}, ""},
		{"next key first, unknown", with(false, 0, "1"), []string{"2", "1"}, "replica a does not have the key 2"},
		{"old key removed too early", with(false, 0, "1", "2"), []string{"2"}, "encrypts with the key 1"},
		{"stopped replica", with(true, 0, "1"), []string{"2", "1"}, ""},
		{"replica that does not answer", with(false, runningFor, "1"), []string{"2", "1"}, ""},
	} {
		err := peerSet{"a": tt.peer}.checkContentKeys(tt.own, now)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
}
