package quota_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/quota"
)

var (
	acme  = quota.OwnerOf(&contract.Caller{Tenant: "acme", Subject: "ana"})
	rival = quota.OwnerOf(&contract.Caller{Tenant: "rival", Subject: "ana"})
)

func TestOwnerOf(t *testing.T) {
	of := func(tenant, issuer, subject string) quota.Owner {
		return quota.OwnerOf(&contract.Caller{Tenant: tenant, Issuer: issuer, Subject: subject})
	}
	if of("acme", "a", "ana") != of("acme", "b", "bob") {
		t.Error("callers of one tenant: got two owners, want one")
	}
	for _, other := range []quota.Owner{of("", "b", "ana"), of("", "a", "bob"), of("acme", "a", "ana")} {
		if of("", "a", "ana") == other {
			t.Errorf("got one owner for two principals: %v", other)
		}
	}
}

// clock is a manual clock.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newLedger(c *clock, change func(*quota.Config)) *quota.Ledger {
	cfg := quota.Config{Part: "things", Limit: 10_000, Share: 0.25, MaxAge: time.Hour, Now: c.now}
	if change != nil {
		change(&cfg)
	}
	return quota.New(cfg)
}

func TestLedger_RejectsOwnerOverShare(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	l := newLedger(c, nil)
	add := func(owner quota.Owner, key string) error {
		err := l.Admit(owner, key)
		if err == nil {
			l.Written(key, 840)
		}
		return err
	}
	for i := range 2 {
		if err := add(acme, fmt.Sprint("key.", i)); err != nil {
			t.Fatal(err)
		}
	}
	_ = add(acme, "key.2")
	var full *contract.Error
	if err := add(acme, "key.3"); !errors.As(err, &full) || full.Code != contract.CodeQuotaExceeded {
		t.Errorf("over the share: got %v, want quota_exceeded", err)
	}
	if err := add(acme, "key.1"); err != nil {
		t.Errorf("a key that is stored: got %v, want no error", err)
	}
	if err := add(rival, "other"); err != nil {
		t.Errorf("another owner: got %v, want no error", err)
	}
	c.at = c.at.Add(2 * time.Hour)
	if err := add(acme, "key.3"); err != nil {
		t.Errorf("after the age limit: got %v, want no error", err)
	}
	l.Written("key.3", -1)
	if diff := cmp.Diff(map[quota.Owner]int64{}, l.Usage()); diff != "" {
		t.Errorf("usage at the end (-want +got):\n%s", diff)
	}
}

func TestLedger_TrimsOldestFirst(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	trimmed := map[quota.Owner]int{}
	l := newLedger(c, func(cfg *quota.Config) {
		cfg.Removable, cfg.Held = true, true
		cfg.OnTrim = func(owner quota.Owner, values int) { trimmed[owner] += values }
	})
	for i, key := range []string{"a", "b", "c", "d", "e"} {
		c.at = c.at.Add(time.Second)
		l.Count(acme, key)
		l.Written(key, 700)
		if i != 1 { // b is still in use
			l.Release(key)
		}
	}
	c.at = c.at.Add(time.Second)
	l.Written("a", 700) // newer than c now
	l.Count(rival, "f")
	l.Release("f")
	var removed []string
	remove := func(key string) error { removed = append(removed, key); return nil }
	if err := l.Trim(acme, "", remove); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c", "d", "e"}, removed); diff != "" {
		t.Errorf("over its share (-want +got):\n%s", diff)
	}
	if err := l.Free(1, remove); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c", "d", "e", "a"}, removed); diff != "" {
		t.Errorf("of the heaviest (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[quota.Owner]int{acme: 4}, trimmed); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// Another process writes to the bucket, too.
func TestLedger_Recounts(t *testing.T) {
	c := &clock{time.Unix(1e9, 0)}
	l := newLedger(c, func(cfg *quota.Config) { cfg.Removable, cfg.Held = true, true })
	begin := c.at
	for _, key := range []string{"resized", "deleted", "kept"} {
		l.Count(acme, key)
		l.Written(key, 100)
	}
	load := func(key string, owner quota.Owner, size int) { l.Load(owner, key, size, begin) }
	c.at = c.at.Add(time.Minute)
	want := func(when string, acmeBytes, rivalBytes int64) {
		t.Helper()
		if diff := cmp.Diff(map[quota.Owner]int64{acme: acmeBytes, rival: rivalBytes}, l.Usage()); diff != "" {
			t.Errorf("%s: usage (-want +got):\n%s", when, diff)
		}
	}
	err := l.Recount(func() error {
		load("resized", acme, 500)
		load("kept", acme, 100)
		load("others", rival, 200)
		l.Count(acme, "created meanwhile")
		l.Written("created meanwhile", 50)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	size := func(key string, bytes int) int64 { return int64(len(key) + bytes + 160) }
	all := size("resized", 500) + size("kept", 100) + size("created meanwhile", 50)
	want("after a recount", all, size("others", 200))
	if err := l.Recount(func() error { return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got error %v, want that of the reader", err)
	}
	want("after a failed recount", all, size("others", 200))
	load("resized", acme, 900) // not during a recount
	want("after a late value", all, size("others", 200))
	l.Release("others")
	var removed []string
	if err := l.Free(1, func(key string) error { removed = append(removed, key); return nil }); err != nil || len(removed) != 1 || removed[0] != "others" {
		t.Errorf("got %v removed and error %v, want the value of another process", removed, err)
	}
}

// The counts are those of the stored values, whatever the order of the calls.
func TestLedger_CountsStoredValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{time.Unix(1e9, 0)}
		l := newLedger(c, func(cfg *quota.Config) { cfg.Removable = true })
		type value struct {
			owner quota.Owner
			bytes int64
			at    time.Time
		}
		stored := map[string]value{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.at = c.at.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 20 * time.Minute}).Draw(t, "pause"))
			key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
			for k, v := range stored {
				if v.at.Before(c.at.Add(-time.Hour)) {
					delete(stored, k)
				}
			}
			l.Usage() // removes the same values
			switch rapid.SampledFrom([]string{"write", "write", "delete", "withdraw"}).Draw(t, "step") {
			case "write":
				owner := rapid.SampledFrom([]quota.Owner{acme, rival}).Draw(t, "owner")
				if v, ok := stored[key]; ok {
					owner = v.owner
				}
				size := rapid.IntRange(0, 5000).Draw(t, "size")
				l.Count(owner, key)
				l.Written(key, size)
				stored[key] = value{owner, int64(len(key) + size + 160), c.at}
			case "delete":
				l.Written(key, -1)
				delete(stored, key)
			case "withdraw":
				if _, ok := stored[key]; !ok {
					l.Count(acme, key)
					l.Withdraw(key)
				}
			}
		}
		want := map[quota.Owner]int64{}
		for _, v := range stored {
			want[v.owner] += v.bytes
		}
		if diff := cmp.Diff(want, l.Usage()); diff != "" {
			t.Fatalf("usage (-want +got):\n%s", diff)
		}
	})
}
