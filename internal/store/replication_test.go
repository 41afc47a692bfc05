package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// A server may answer direct reads although it is behind the leader of the stream. In this test, a
// client answers like such a server: it has no messages.
func TestReplicatedStore_ReadsFromLeader(t *testing.T) {
	t.Parallel()
	ctx, urls := t.Context(), teststore.ServeCluster(t)
	s, err := store.Open(ctx, store.Config{URL: urls, Owner: "a", Replication: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := bucket(t, s, store.BucketConfig{})
	rev := must[uint64](t)(b.Create(ctx, "key", []byte("value")))
	l := openLog(t, s, store.LogConfig{})
	for _, text := range []string{"1", "2", "3"} {
		appendText(t, l, "log.a", text)
	}

	conn, err := nats.Connect(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	for names := js.StreamNames(ctx); ; {
		name, ok := <-names.Name()
		if !ok {
			break
		}
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		if cfg.Replicas != 3 {
			t.Errorf("%s: got %d replicas, want 3", name, cfg.Replicas)
		}
		cfg.AllowDirect = false // so that only the client below answers direct reads
		if _, err := js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Subscribe("$JS.API.DIRECT.GET.>", func(m *nats.Msg) {
		behind := nats.NewMsg(m.Reply)
		behind.Header.Set("Status", "404")
		behind.Header.Set("Description", "Message Not Found")
		if err := conn.PublishMsg(behind); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}

	if got, err := b.Get(ctx, "key"); err != nil || string(got.Value) != "value" || got.Revision != rev {
		t.Errorf("Get: got %q at revision %d and error %v, want value at %d", got.Value, got.Revision, err, rev)
	}
	if diff := cmp.Diff([]string{"key"}, keys(t, b, "")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1", "2", "3"}, texts(t, l, store.ReadFrom{})); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
