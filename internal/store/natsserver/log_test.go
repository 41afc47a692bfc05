package natsserver

import (
	"log/slog"
	"testing"
)

func TestServerLog_ReportsFailures(t *testing.T) {
	failures := make(chan string, 1)
	server := newServerLog(slog.New(slog.DiscardHandler), failures)
	server.Warnf("slow consumer %d", 1)
	server.Noticef("JetStream will be DISABLED, in a notice")
	if len(failures) != 0 {
		t.Errorf("got failure %q, want none", <-failures)
	}
	for range 2 { // the second failure is dropped, because the channel is full
		server.Errorf("JetStream out of %s, will be DISABLED", "file space")
	}
	if want, got := "JetStream out of file space, will be DISABLED", <-failures; got != want || server.lastMessage() != want {
		t.Errorf("got failure %q and last message %q, want %q", got, server.lastMessage(), want)
	}
	if server.hasFailed() {
		t.Error("after an error: hasFailed = true, want false")
	}
	server.Fatalf("no directory")
	if !server.hasFailed() || server.lastMessage() != "no directory" {
		t.Errorf("after a fatal error: hasFailed = %v, last message %q; want true and its text", server.hasFailed(), server.lastMessage())
	}
}
