package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/caprouter/caprouter/test/internal/process"
)

// maxServerStore is more than the router reserves.
const maxServerStore = 64 << 30

// roleStore is the role of this program that serves an external store.
const roleStore = "store"

// serveStore runs a NATS server with its files in dir until the parent ends. Port -1
// is any free port.
func serveStore(ctx context.Context, dir, port string) error {
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("port %q: %w", port, err)
	}
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: number, JetStream: true, JetStreamMaxStore: maxServerStore, StoreDir: dir, SyncAlways: true, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(process.StartTimeout) {
		return fmt.Errorf("the NATS server does not listen on port %s", port)
	}
	return process.ServeRoleFunc(ctx, srv.Addr().String(), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

// storeServer is a NATS server in a process of its own, which keeps its port and its
// files over restarts.
type storeServer struct {
	dir, port string
	process   *process.Process // nil while it is down
}

func startStoreServer(ctx context.Context, dir string) (*storeServer, error) {
	s := &storeServer{dir: dir, port: "-1"}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	var err error
	_, s.port, err = net.SplitHostPort(s.process.Addr())
	return s, err
}

func (s *storeServer) start(ctx context.Context) (err error) {
	s.process, err = process.StartRole(ctx, roleStore, roleStore, s.dir, s.port)
	return err
}

// end ends the server, if one runs, by Kill or Stop.
func (s *storeServer) end(how func(*process.Process) error) error {
	if s.process == nil {
		return nil
	}
	err := how(s.process)
	s.process = nil
	return err
}

func (s *storeServer) url() string { return "nats://127.0.0.1:" + s.port }

// moveInto stops the server and moves its files to where an embedded store has them,
// so that the audit log can be verified.
func (s *storeServer) moveInto(ctx context.Context, dataDir string) error {
	if err := s.end(func(p *process.Process) error { return p.Stop(ctx) }); err != nil {
		return err
	}
	to := filepath.Join(dataDir, "store")
	return errors.Join(os.MkdirAll(to, 0o700), os.Rename(filepath.Join(s.dir, "jetstream"), filepath.Join(to, "jetstream")))
}
