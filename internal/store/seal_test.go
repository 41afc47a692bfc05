package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/remnants"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// newRing returns a keyring whose current key is new, and its text. older is the text of the
// other keys.
func newRing(t testing.TB, older string) (*contentkey.Keyring, string) {
	t.Helper()
	secret := make([]byte, 32)
	rand.Read(secret)
	text := base64.StdEncoding.EncodeToString(secret) + "\n" + older
	return must[*contentkey.Keyring](t)(contentkey.Parse(text, "the test")), text
}

// canary returns a value with a unique text, which wantRemnants finds in files.
func canary(name string, size int) []byte {
	return append([]byte(`{"text":"canary-`+name+`"`), append(bytes.Repeat([]byte(" "), size), '}')...)
}

// wantRemnants checks that the ring decrypts exactly these canaries in the files, and that no
// canary is in clear.
func wantRemnants(t *testing.T, dir string, ring *contentkey.Keyring, decrypted ...string) {
	t.Helper()
	found := map[string]bool{}
	for _, r := range remnants.Read(t, dir, ring) {
		for rest := r.Data; ; {
			_, after, ok := bytes.Cut(rest, []byte("canary-"))
			if !ok {
				break
			}
			name, _, _ := bytes.Cut(after, []byte(`"`))
			if rest = after; !r.Decrypted {
				t.Errorf("%s: got canary %s in clear, want it encrypted", r.Where, name)
			}
			found[string(name)] = true
		}
	}
	for _, name := range decrypted {
		if !found[name] {
			t.Errorf("got no canary %s, want it decrypted", name)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("got canary %s decrypted, want it erased", name)
	}
}

func TestSealedBucket_StoresNothingInClear(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	ring, _ := newRing(t, "")
	open := func() (*store.Store, *store.Bucket) {
		s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
		return s, bucket(t, s, store.BucketConfig{Keys: ring})
	}
	s, b := open()
	first := must[uint64](t)(b.Create(ctx, "a", canary("one", 10)))
	must[uint64](t)(b.Update(ctx, "a", canary("two", 10), first))
	must[uint64](t)(b.Create(ctx, "large", canary("large", 2_000_000)))
	must[uint64](t)(b.Create(ctx, "index.a", nil))
	_, err := b.Create(ctx, "a", canary("three", 1))
	wantErr(t, "second create", err, store.ErrExists)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantRemnants(t, dir, ring, "one", "two", "large")

	s, b = open()
	for key, want := range map[string][]byte{"a": canary("two", 10), "large": canary("large", 2_000_000), "index.a": nil} {
		if got := must[store.Entry](t)(b.Get(ctx, key)); !bytes.Equal(got.Value, want) {
			t.Errorf("%s: got %.80q, want %.80q", key, got.Value, want)
		}
	}
	// An update uses the same data key, also if the value was not read before.
	must[uint64](t)(b.Update(ctx, "a", canary("four", 10), first+1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantRemnants(t, dir, ring, "one", "two", "four", "large")
}

func TestSealedBucket_DeleteErasesEveryRevision(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	ring, _ := newRing(t, "")
	s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
	b := bucket(t, s, store.BucketConfig{Keys: ring})
	for _, key := range []string{"a", "b"} {
		rev := must[uint64](t)(b.Create(ctx, key, canary(key+"1", 10)))
		rev = must[uint64](t)(b.Update(ctx, key, canary(key+"2", 1_000_000), rev))
		must[uint64](t)(b.Update(ctx, key, canary(key+"3", 10), rev))
	}
	for range 2 {
		if err := b.Delete(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Get(ctx, "a")
	wantErr(t, "get of a deleted key", err, store.ErrNotFound)
	must[uint64](t)(b.Create(ctx, "a", canary("a4", 10)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantRemnants(t, dir, ring, "a4", "b1", "b3")
}

func TestSealedBucket_EraseHistoryKeepsCurrentValue(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	ring, _ := newRing(t, "")
	s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
	b := bucket(t, s, store.BucketConfig{Keys: ring})
	rev := must[uint64](t)(b.Create(ctx, "a", canary("one", 10)))
	must[uint64](t)(b.Update(ctx, "a", canary("two", 10), rev))
	for range 2 {
		if err := b.EraseHistory(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
	entry := must[store.Entry](t)(b.Get(ctx, "a"))
	if !bytes.Equal(entry.Value, canary("two", 10)) {
		t.Errorf("got %s, want the newest value", entry.Value)
	}
	must[uint64](t)(b.Update(ctx, "a", canary("three", 10), entry.Revision))
	if err := b.EraseHistory(ctx, "none"); err != nil {
		t.Errorf("erase the history of a missing key: got error %v, want nil", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantRemnants(t, dir, ring, "two", "three")
}

func TestSealedBucket_ExpiryErasesEveryRevision(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	ring, _ := newRing(t, "")
	s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
	const maxAge = 2 * time.Second
	b := bucket(t, s, store.BucketConfig{Keys: ring, MaxAge: maxAge})
	rev := must[uint64](t)(b.Create(ctx, "a", canary("one", 10)))
	must[uint64](t)(b.Update(ctx, "a", canary("two", 10), rev))
	rev = must[uint64](t)(b.Create(ctx, "kept", canary("kept", 10)))
	start := time.Now()
	testkit.Eventually(t, "the data keys of expired values are erased, and the others are kept", func() bool {
		entry, err := b.Get(ctx, "kept") // updated before it expires, so that its data key moves to a new epoch
		if err != nil {
			t.Fatalf("get of the updated value: got error %v, want nil", err)
		}
		rev = must[uint64](t)(b.Update(ctx, "kept", entry.Value, rev))
		var readable strings.Builder
		for _, r := range remnants.Read(t, dir, ring) {
			if r.Decrypted {
				readable.WriteString(string(r.Data))
			}
		}
		return time.Since(start) > 2*maxAge && !strings.Contains(readable.String(), "canary-one") && !strings.Contains(readable.String(), "canary-two") &&
			strings.Contains(readable.String(), "canary-kept")
	})
	testkit.Eventually(t, "the data key of the last value is erased", func() bool {
		return !containsText(remnants.Read(t, dir, ring), "canary-kept")
	})
}

func containsText(found []remnants.Remnant, text string) bool {
	for _, r := range found {
		if bytes.Contains(r.Data, []byte(text)) {
			return true
		}
	}
	return false
}

func TestSealedBucket_ReportsMissingMasterKey(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	first, text := newRing(t, "")
	s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
	b := bucket(t, s, store.BucketConfig{Keys: first})
	must[uint64](t)(b.Create(ctx, "a", canary("one", 10)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	other, _ := newRing(t, "")
	s = teststore.Open(t, func(c *store.Config) { c.Dir = dir })
	_, err := s.Bucket(ctx, store.BucketConfig{Name: "BUCKET", Keys: other})
	if !contentkey.IsUnknownKey(err) || !strings.Contains(err.Error(), first.CurrentID()) || !strings.Contains(err.Error(), other.CurrentID()) {
		t.Errorf("got error %v, want one with the ids of both keys", err)
	}

	rotated, _ := newRing(t, text)
	b = bucket(t, s, store.BucketConfig{Keys: rotated})
	must[uint64](t)(b.Create(ctx, "b", canary("two", 10)))
	if got := must[store.Entry](t)(b.Get(ctx, "a")); !bytes.Equal(got.Value, canary("one", 10)) {
		t.Errorf("got %s after a rotation, want the value", got.Value)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantRemnants(t, dir, first, "one") // the first key does not decrypt later values
}

func TestSealedBucket_ReadsValuesOfEarlierVersions(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	ring, _ := newRing(t, "")
	s := teststore.Open(t, func(c *store.Config) { c.Dir = dir })
	b := bucket(t, s, store.BucketConfig{})
	rev := must[uint64](t)(b.Create(ctx, "a", canary("one", 10)))
	must[uint64](t)(b.Create(ctx, "b", canary("two", 10)))
	b = bucket(t, s, store.BucketConfig{Keys: ring})
	if got := must[store.Entry](t)(b.Get(ctx, "a")); !bytes.Equal(got.Value, canary("one", 10)) {
		t.Errorf("got %s, want the value", got.Value)
	}
	must[uint64](t)(b.Update(ctx, "a", canary("three", 10), rev))
	if got := must[store.Entry](t)(b.Get(ctx, "a")); !bytes.Equal(got.Value, canary("three", 10)) {
		t.Errorf("got %s, want the new value", got.Value)
	}
	if err := b.Delete(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range remnants.Read(t, dir, ring) {
		if bytes.Contains(r.Data, []byte("canary-two")) {
			t.Errorf("%s: got a deleted value, want it erased", r.Where)
		}
	}
}

func TestSealedBucket_ReplacesValueWithoutDataKey(t *testing.T) {
	ctx := t.Context()
	ring, _ := newRing(t, "")
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{Keys: ring})
	must[uint64](t)(b.Create(ctx, "a", canary("one", 10)))
	if err := b.DeleteDataKeys(ctx, "a"); err != nil { // as if the process had been killed before it wrote the data key
		t.Fatal(err)
	}
	_, err := b.Get(ctx, "a")
	wantErr(t, "get", err, store.ErrNotFound)
	if err := b.Scan(ctx, "", func(e store.Entry) error { return fmt.Errorf("got key %s, want none", e.Key) }); err != nil {
		t.Error(err)
	}
	must[uint64](t)(b.Create(ctx, "a", canary("two", 10)))
	if got := must[store.Entry](t)(b.Get(ctx, "a")); !bytes.Equal(got.Value, canary("two", 10)) {
		t.Errorf("got %s, want the new value", got.Value)
	}
}

// Concurrent erasure of histories, deletes and moves of data keys lose no update.
func TestSealedBucket_KeepsAllConcurrentUpdates(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ring, _ := newRing(t, "")
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{Keys: ring, MaxAge: time.Hour})
	const writers, updates = 4, 50
	var updaters sync.WaitGroup
	report := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for w := range writers {
		key := "counter." + strconv.Itoa(w%2)
		updaters.Go(func() {
			for range updates {
				_, err := store.CompareAndSet(ctx, b, key, func(e store.Entry) ([]byte, error) {
					n, _ := strconv.Atoi(string(e.Value))
					return []byte(strconv.Itoa(n + 1)), nil
				})
				report(err)
			}
		})
	}
	stop := make(chan struct{})
	var background sync.WaitGroup
	for _, step := range []func() error{
		func() error { return b.EraseHistory(ctx, "counter.0") },
		func() error { return b.EraseHistory(ctx, "counter.0") },
		func() error { return b.MoveDataKeys(ctx) },
		func() error { b.ClearDataKeyCache(); return nil },
		func() error {
			_, err := b.Create(ctx, "other", []byte("x"))
			return errors.Join(err, b.Delete(ctx, "other"))
		},
	} {
		background.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := step(); !errors.Is(err, store.ErrConflict) {
						report(err)
					}
				}
			}
		})
	}
	updaters.Wait()
	close(stop)
	background.Wait()
	b.ClearDataKeyCache()
	for _, key := range []string{"counter.0", "counter.1"} {
		if got := must[store.Entry](t)(b.Get(ctx, key)); string(got.Value) != strconv.Itoa(writers/2*updates) {
			t.Errorf("%s: got %s, want %d", key, got.Value, writers/2*updates)
		}
	}
}
