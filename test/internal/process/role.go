package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// IOTimeout ends connections without progress.
const IOTimeout = 10 * time.Second

// ServeRole serves the handler on a free port of 127.0.0.1 for the parent that
// called [StartRole]. It ends when standard input is closed, which the exit of the
// parent does as well.
func ServeRole(ctx context.Context, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return serveParent(ctx, listener.Addr().String(), os.Stdin, os.Stdout, func(ctx context.Context) error {
		return ServeUntilDone(ctx, listener, handler)
	})
}

// ServeRoleFunc is [ServeRole] for a server that already listens at addr. serve must
// return when its context ends.
func ServeRoleFunc(ctx context.Context, addr string, serve func(context.Context) error) error {
	return serveParent(ctx, addr, os.Stdin, os.Stdout, serve)
}

// ServeUntilDone serves the handler until ctx ends.
func ServeUntilDone(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: IOTimeout}
	group := run.New(ctx)
	group.Go("serve", func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go("stop", func(ctx context.Context) error {
		<-ctx.Done()
		return server.Close()
	})
	return group.Wait()
}

// serveParent writes the address to the parent, then waits until the parent closes
// standard input.
func serveParent(ctx context.Context, addr string, in io.Reader, out io.Writer, serve func(context.Context) error) error {
	if _, err := fmt.Fprintln(out, addr); err != nil {
		return err
	}
	group := run.New(ctx)
	group.Go("serve", serve)
	group.Go("parent", func(context.Context) error {
		defer group.Stop(nil)
		_, err := io.Copy(io.Discard, in)
		return err
	})
	return group.Wait()
}
