package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

func TestBucket_ComparesAndSets(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{Share: 0.5})
	_, err := b.Get(ctx, "a")
	wantErr(t, "get of a missing key", err, store.ErrNotFound)
	_, err = b.Update(ctx, "a", []byte("0"), 1)
	wantErr(t, "update of a missing key", err, store.ErrConflict)
	_, err = b.Update(ctx, "a", []byte("0"), 0)
	wantErr(t, "update from revision 0", err, store.ErrConflict)

	first := must[uint64](t)(b.Create(ctx, "a", []byte("1")))
	_, err = b.Create(ctx, "a", []byte("2"))
	wantErr(t, "second create", err, store.ErrExists)
	second := must[uint64](t)(b.Update(ctx, "a", []byte("3"), first))
	_, err = b.Update(ctx, "a", []byte("4"), first)
	wantErr(t, "update from an old revision", err, store.ErrConflict)
	got := must[store.Entry](t)(b.Get(ctx, "a"))
	if string(got.Value) != "3" || got.Revision != second || got.Key != "a" || time.Since(got.At) > time.Hour {
		t.Errorf("got %+v, want a = 3 at revision %d", got, second)
	}
	third := must[uint64](t)(b.Put(ctx, "a", nil))
	if got := must[store.Entry](t)(b.Get(ctx, "a")); len(got.Value) != 0 || got.Revision != third {
		t.Errorf("got %+v, want an empty value at revision %d", got, third)
	}

	for range 2 {
		if err := b.Delete(ctx, "a"); err != nil {
			t.Errorf("delete: got %v, want nil", err)
		}
	}
	_, err = b.Get(ctx, "a")
	wantErr(t, "get of a deleted key", err, store.ErrNotFound)
	_, err = b.Update(ctx, "a", []byte("5"), third)
	wantErr(t, "update of a deleted key", err, store.ErrConflict)
	if got := must[uint64](t)(b.Create(ctx, "a", []byte("6"))); got <= third {
		t.Errorf("got revision %d after %d, want a larger one", got, third)
	}
}

func TestBucket_DeletesRevision(t *testing.T) {
	for name, keyTTL := range map[string]bool{"removed": false, "replaced by a marker": true} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			sizes := map[string]int{}
			b := bucket(t, teststore.Open(t), store.BucketConfig{KeyTTL: keyTTL, OnWrite: func(key string, size int) { sizes[key] = size }})
			first := must[uint64](t)(b.Create(ctx, "a", []byte("1")))
			other := must[uint64](t)(b.Create(ctx, "b", []byte("2")))
			second := must[uint64](t)(b.Update(ctx, "a", []byte("345"), first))
			wantErr(t, "delete of an old revision", b.DeleteRevision(ctx, "a", first), store.ErrConflict)
			if got := must[store.Entry](t)(b.Get(ctx, "a")); got.Revision != second || sizes["a"] != 3 {
				t.Errorf("got revision %d with a recorded size of %d, want %d with 3", got.Revision, sizes["a"], second)
			}
			for range 2 { // the second time, there is no such key, or only a marker
				if err := b.DeleteRevision(ctx, "a", second); err != nil {
					t.Errorf("delete: got %v, want nil", err)
				}
			}
			if err := b.DeleteRevision(ctx, "c", second); err != nil {
				t.Errorf("delete of a key that never existed: got %v, want nil", err)
			}
			_, err := b.Get(ctx, "a")
			wantErr(t, "get of what was deleted", err, store.ErrNotFound)
			if got := must[store.Entry](t)(b.Get(ctx, "b")); got.Revision != other || sizes["a"] != -1 {
				t.Errorf("got revision %d of b and the size %d of a, want %d and -1", got.Revision, sizes["a"], other)
			}
			third := must[uint64](t)(b.Create(ctx, "a", []byte("6")))
			wantErr(t, "delete of a revision before the marker", b.DeleteRevision(ctx, "a", second), store.ErrConflict)
			if got := must[store.Entry](t)(b.Get(ctx, "a")); got.Revision != third {
				t.Errorf("got revision %d, want %d", got.Revision, third)
			}
			if err := b.Delete(ctx, "a"); err != nil { // an unconditional marker
				t.Error(err)
			}
			if err := b.DeleteRevision(ctx, "a", third); err != nil {
				t.Errorf("delete of a deleted key: got %v, want nil", err)
			}
		})
	}
}

func TestBucket_RejectsInvalidNames(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{})
	for _, key := range []string{"", ".", "a.", ".a", "a..b", "a b", "a*", "a.>", "a/b", "ä", "a\r\nPUB", strings.Repeat("k", 513)} {
		t.Run(fmt.Sprintf("key %.20q", key), func(t *testing.T) {
			_, get := b.Get(ctx, key)
			_, create := b.Create(ctx, key, nil)
			_, put := b.Put(ctx, key, nil)
			for call, err := range map[string]error{"get": get, "create": create, "put": put, "delete": b.Delete(ctx, key)} {
				if err == nil || !strings.Contains(err.Error(), "want at most 512") {
					t.Errorf("%s: got error %v, want one with the limit of keys", call, err)
				}
			}
		})
	}
	for _, prefix := range []string{"a", ".", "a*.", "a..", "*"} {
		if err := b.Scan(ctx, prefix, func(store.Entry) error { return nil }); err == nil {
			t.Errorf("scan of %q: got no error, want one", prefix)
		}
	}
	for _, cfg := range []store.BucketConfig{{Name: ""}, {Name: "a.b"}, {Name: "a b"}, {Name: "x", Share: 1.5}, {Name: "x", Share: -1}} {
		if _, err := s.Bucket(ctx, cfg); err == nil {
			t.Errorf("bucket %+v: got no error, want one", cfg)
		}
	}
}

func TestBucket_AcceptsOneOfConcurrentWriters(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	rev := must[uint64](t)(b.Create(ctx, "contested", []byte("start")))
	race := func(call string, write func(i int) error, wantLoss error) {
		var accepted, rejected atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				if err := write(i); err == nil {
					accepted.Add(1)
				} else {
					rejected.Add(1)
					wantErr(t, call, err, wantLoss)
				}
			})
		}
		wg.Wait()
		if accepted.Load() != 1 || rejected.Load() != 63 {
			t.Errorf("%s: got %d accepted and %d rejected, want 1 and 63", call, accepted.Load(), rejected.Load())
		}
	}
	race("update", func(i int) error {
		_, err := b.Update(ctx, "contested", fmt.Append(nil, i), rev)
		return err
	}, store.ErrConflict)
	race("create", func(i int) error {
		_, err := b.Create(ctx, "new", fmt.Append(nil, i))
		return err
	}, store.ErrExists)
}

func TestBucket_ScansInRevisionOrder(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	var want []string
	for i := range 10_400 { // more keys than a page
		key := fmt.Sprintf("open.%d", i)
		must[uint64](t)(b.Put(ctx, key, []byte("x")))
		if i%50 == 0 {
			must[uint64](t)(b.Put(ctx, fmt.Sprintf("req.%d", i%100), []byte("y")))
		}
		want = append(want, key)
	}
	must[uint64](t)(b.Put(ctx, "open.7", []byte("again")))
	want = append(slices.Delete(want, 7, 8), "open.7")
	if diff := cmp.Diff(want, keys(t, b, "open.")); diff != "" {
		t.Errorf("keys in revision order (-want +got):\n%s", diff)
	}
	if got := len(keys(t, b, "")); got != 10_402 {
		t.Errorf("scan of all: got %d keys, want 10402", got)
	}
	if got := keys(t, b, "ope."); got != nil {
		t.Errorf("scan of a partial key: got %q, want none", got)
	}

	seen := 0
	err := b.Scan(ctx, "open.", func(store.Entry) error {
		if seen++; seen == 3 {
			return store.ErrStop
		}
		return nil
	})
	if err != nil || seen != 3 {
		t.Errorf("stopped scan: got %d keys and error %v, want 3 and nil", seen, err)
	}
	wantErr(t, "scan with an error of the callback", b.Scan(ctx, "", func(store.Entry) error { return context.Canceled }), context.Canceled)
}

func TestBucket_ScanSeesConcurrentWrites(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	padding := make([]byte, 8<<10)
	for i := range 1_100 { // more bytes than a page
		must[uint64](t)(b.Put(ctx, fmt.Sprintf("k.%d", i), append([]byte("old"), padding...)))
	}
	got := map[string]string{}
	rewritten := false
	err := b.Scan(ctx, "k.", func(e store.Entry) error {
		if !rewritten { // before the last page is read, rewrite its keys, which moves them to the end
			rewritten = true
			for i := 1_000; i < 1_100; i++ {
				if _, err := b.Put(ctx, fmt.Sprintf("k.%d", i), append([]byte("new"), padding...)); err != nil {
					return err
				}
			}
		}
		got[e.Key] = string(e.Value[:3])
		return nil
	})
	if err != nil || len(got) != 1_100 || got["k.1050"] != "new" {
		t.Errorf("got %d keys, k.1050 = %q and error %v; want 1100, new and nil", len(got), got["k.1050"], err)
	}
}

func TestBucket_DropsKeysByAge(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{MaxAge: 200 * time.Millisecond})
	must[uint64](t)(b.Put(ctx, "a", nil))
	testkit.Eventually(t, "the key expires", func() bool {
		_, err := b.Get(ctx, "a")
		return err != nil
	})
	if _, err := b.Create(ctx, "a", nil); err != nil {
		t.Errorf("create after the expiry: got error %v, want nil", err)
	}
}

func TestBucket_KeepsKeysWhenConfigurationChanges(t *testing.T) {
	ctx := t.Context()
	s := teststore.Open(t)
	b := bucket(t, s, store.BucketConfig{Share: 0.1})
	must[uint64](t)(b.Put(ctx, "a", []byte("1")))
	changed := bucket(t, s, store.BucketConfig{Share: 0.2, MaxAge: time.Hour})
	if got, err := changed.Get(ctx, "a"); err != nil || string(got.Value) != "1" {
		t.Errorf("got %q and error %v, want 1", got.Value, err)
	}
}

// After random operations, a bucket has the content of a map.
func TestBucket_MatchesModel(t *testing.T) {
	t.Parallel()
	ring, _ := newRing(t, "")
	t.Run("clear", func(t *testing.T) { checkModel(t, store.BucketConfig{}) })
	t.Run("encrypted", func(t *testing.T) { checkModel(t, store.BucketConfig{Keys: ring}) })
}

func checkModel(t *testing.T, cfg store.BucketConfig) {
	t.Parallel()
	s := teststore.Open(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		round++
		cfg.Name = fmt.Sprintf("M%d", round)
		b := bucket(t, s, cfg)
		type storedValue struct {
			value string
			rev   uint64
		}
		model := map[string]storedValue{}
		key := rapid.SampledFrom([]string{"a", "a.b", "a.c", "b", "b.=_-"})
		value := rapid.StringN(0, 5, 20)
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				k, v := key.Draw(rt, "key"), value.Draw(rt, "value")
				model[k] = storedValue{v, must[uint64](t)(b.Put(ctx, k, []byte(v)))}
			},
			"create": func(rt *rapid.T) {
				k, v := key.Draw(rt, "key"), value.Draw(rt, "value")
				rev, err := b.Create(ctx, k, []byte(v))
				if _, exists := model[k]; exists {
					wantErr(rt, "create", err, store.ErrExists)
				} else if err != nil {
					rt.Fatal(err)
				} else {
					model[k] = storedValue{v, rev}
				}
			},
			"update": func(rt *rapid.T) {
				k, v := key.Draw(rt, "key"), value.Draw(rt, "value")
				from := model[k].rev + rapid.Uint64Range(0, 1).Draw(rt, "revision offset")
				rev, err := b.Update(ctx, k, []byte(v), from)
				if have, exists := model[k]; !exists || have.rev != from {
					wantErr(rt, "update", err, store.ErrConflict)
				} else if err != nil {
					rt.Fatal(err)
				} else {
					model[k] = storedValue{v, rev}
				}
			},
			"delete": func(rt *rapid.T) {
				k := key.Draw(rt, "key")
				if err := b.Delete(ctx, k); err != nil {
					rt.Fatal(err)
				}
				delete(model, k)
			},
			"": func(rt *rapid.T) {
				got := map[string]storedValue{}
				err := b.Scan(ctx, "", func(e store.Entry) error {
					got[e.Key] = storedValue{string(e.Value), e.Revision}
					return nil
				})
				if err != nil || !maps.Equal(got, model) {
					rt.Fatalf("got %v and error %v, want %v", got, err, model)
				}
				if got, want := len(keys(t, b, "a.")), len(slices.DeleteFunc(slices.Collect(maps.Keys(model)), func(k string) bool { return !strings.HasPrefix(k, "a.") })); got != want {
					rt.Fatalf("got %d keys below a., want %d", got, want)
				}
			},
		})
	})
}

// If the first attempt of an update is stored but not confirmed, the retry finds its message, and
// returns its revision instead of a conflict.
func TestBucket_RetryFindsOwnWrite(t *testing.T) {
	ctx := t.Context()
	b := bucket(t, teststore.Open(t), store.BucketConfig{})
	created := must[uint64](t)(b.Create(ctx, "a", []byte("1")))
	first, second, err := b.ResendUpdate(ctx, "a", []byte("2"), created)
	if err != nil || first != second {
		t.Errorf("got revisions %d and %d and error %v, want one revision", first, second, err)
	}
	must[uint64](t)(b.Create(ctx, "b", []byte("1")))
	_, _, err = b.ResendUpdate(ctx, "a", []byte("3"), created)
	wantErr(t, "update from an old revision", err, store.ErrConflict)
}
