package store_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/caprouter/caprouter/internal/run"
)

// startProxy starts a TCP proxy for a server, and returns its address. For each connection it
// calls toClient and toServer, which forward the data.
func startProxy(t *testing.T, server string, toClient func(client, server net.Conn), toServer func(server, client net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	group := run.New(context.WithoutCancel(t.Context()))
	group.Go("proxy", func(ctx context.Context) error {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = client.Close(), upstream.Close() })
			group.Go("to the client", func(context.Context) error {
				toClient(client, upstream)
				return nil
			})
			group.Go("to the server", func(context.Context) error {
				toServer(upstream, client)
				return nil
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		group.Stop(nil)
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}
