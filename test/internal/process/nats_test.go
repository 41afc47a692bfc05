package process

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/caprouter/caprouter/internal/testkit"
)

func TestNATSCluster_KeepsStreamWhenLeaderIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts three NATS servers")
	}
	dir := t.TempDir()
	binary, err := BuildNATS(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := StartNATSCluster(t.Context(), binary, dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	conn, err := nats.Connect(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	leader, err := c.StreamLeader(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(leader); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	var got string
	testkit.Eventually(t, "the stream has its message after the leader was killed", func() bool {
		stream, err := js.Stream(t.Context(), "S")
		if err != nil {
			return false // no server leads the stream yet
		}
		msg, err := stream.GetMsg(t.Context(), 1)
		if err != nil {
			return false
		}
		got = string(msg.Data)
		return true
	})
	if got != "kept" {
		t.Errorf("got message %q, want kept", got)
	}
	if _, err := c.StreamLeader(t.Context(), "T"); err == nil || !strings.Contains(err.Error(), "no server leads") {
		t.Errorf("unknown stream: got %v, want an error", err)
	}
}
