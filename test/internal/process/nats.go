package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/strictjson"
)

const natsPackage = "github.com/nats-io/nats-server/v2"

// BuildNATS compiles the NATS server of go.mod into dir and returns the path of the
// binary.
func BuildNATS(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "nats-server")
	_, err := runGo(ctx, "build", "-trimpath", "-o", binary, natsPackage)
	return binary, err
}

// NATSCluster is a cluster of NATS servers with JetStream on loopback, each in a process
// and with a directory of its own. A server keeps its ports and its files when it is
// started again. The servers sync every write.
type NATSCluster struct {
	binary  string
	servers []*natsServer
}

type natsServer struct {
	name, config    string
	client, monitor string   // host:port
	process         *Process // nil while it does not run
}

// StartNATSCluster starts n servers with their files below dir, and waits until they
// have elected a leader.
func StartNATSCluster(ctx context.Context, binary, dir string, n int) (_ *NATSCluster, err error) {
	c := &NATSCluster{binary: binary}
	addrs, err := freeAddrs(ctx, 3*n)
	if err != nil {
		return nil, err
	}
	routes := make([]string, n)
	for i := range n {
		routes[i] = "nats://" + addrs[3*i+2]
	}
	for i := range n {
		s := &natsServer{name: fmt.Sprintf("n%d", i+1), client: addrs[3*i], monitor: addrs[3*i+1]}
		at := filepath.Join(dir, s.name)
		s.config = filepath.Join(at, "nats.conf")
		text := fmt.Sprintf(`server_name: %s
listen: %q
http: %q
jetstream { store_dir: %q, max_file: 64GB, max_mem: 1GB, sync_interval: always }
cluster { name: test, listen: %q, routes: [%s] }
`, s.name, s.client, s.monitor, at, addrs[3*i+2], strings.Join(routes, ", "))
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(s.config, []byte(text), 0o600)); err != nil {
			return nil, err
		}
		c.servers = append(c.servers, s)
	}
	for i := range n {
		if err := c.launch(ctx, i); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.AwaitHealthy(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// freeAddrs returns n addresses of 127.0.0.1 with ports that were free a moment ago,
// because the configuration of a server contains the ports of the others.
func freeAddrs(ctx context.Context, n int) (addrs []string, err error) {
	var lc net.ListenConfig
	var listeners []net.Listener // all are open until the end, so that the ports differ
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for range n {
		listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
		addrs = append(addrs, listener.Addr().String())
	}
	return addrs, nil
}

// URL returns the addresses of all servers for store.url.
func (c *NATSCluster) URL() string {
	urls := make([]string, len(c.servers))
	for i, s := range c.servers {
		urls[i] = "nats://" + s.client
	}
	return strings.Join(urls, ",")
}

func (c *NATSCluster) launch(ctx context.Context, i int) error {
	s := c.servers[i]
	log, err := openLog(filepath.Join(filepath.Dir(s.config), "server.log"))
	if err != nil {
		return err
	}
	p := &Process{Name: "NATS server " + s.name, log: log}
	p.cmd = exec.CommandContext(ctx, c.binary, "--config", s.config) //nolint:gosec // built by BuildNATS
	p.cmd.Stderr = log
	if err := p.startCommand(ctx); err != nil {
		return errors.Join(err, log.close())
	}
	s.process = p
	return nil
}

// Start starts server i again and waits until all servers are up to date.
func (c *NATSCluster) Start(ctx context.Context, i int) error {
	if err := c.launch(ctx, i); err != nil {
		return err
	}
	return c.AwaitHealthy(ctx)
}

// Kill ends server i with SIGKILL.
func (c *NATSCluster) Kill(i int) error { return c.end(i, (*Process).Kill) }

// Stop shuts server i down gracefully: it hands its leaderships over first.
func (c *NATSCluster) Stop(ctx context.Context, i int) error {
	return c.end(i, func(p *Process) error { return p.Stop(ctx) })
}

func (c *NATSCluster) end(i int, how func(*Process) error) error {
	p := c.servers[i].process
	if p == nil {
		return nil
	}
	c.servers[i].process = nil
	return how(p)
}

// Close kills all servers.
func (c *NATSCluster) Close() error {
	var errs []error
	for i := range c.servers {
		errs = append(errs, c.Kill(i))
	}
	return errors.Join(errs...)
}

// AwaitHealthy waits until every running server is in contact with the leader of the
// cluster and has all its streams up to date.
func (c *NATSCluster) AwaitHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	for _, s := range c.servers {
		for s.process != nil {
			if err := s.process.CheckRunning(); err != nil {
				return fmt.Errorf("%w%s", err, s.process.logTail())
			}
			var health struct {
				Status string `json:"status"`
			}
			err := s.monitorGet(ctx, "/healthz", &health)
			if err == nil && health.Status == "ok" {
				break
			}
			if !resilience.Sleep(ctx, 20*time.Millisecond) {
				return fmt.Errorf("the NATS server %s is not healthy within %s: %q, %w", s.name, StartTimeout, health.Status, err)
			}
		}
	}
	return nil
}

// StreamLeader returns the number of the server that leads the stream.
func (c *NATSCluster) StreamLeader(ctx context.Context, stream string) (int, error) {
	for _, s := range c.servers {
		if s.process == nil {
			continue
		}
		var report struct {
			AccountDetails []struct {
				StreamDetail []struct {
					Name    string `json:"name"`
					Cluster struct {
						Leader string `json:"leader"`
					} `json:"cluster"`
				} `json:"stream_detail"`
			} `json:"account_details"`
		}
		if err := s.monitorGet(ctx, "/jsz?streams=true", &report); err != nil {
			return 0, err
		}
		for _, account := range report.AccountDetails {
			for _, detail := range account.StreamDetail {
				for i, s := range c.servers {
					if detail.Name == stream && detail.Cluster.Leader == s.name {
						return i, nil
					}
				}
			}
		}
	}
	return 0, fmt.Errorf("no server leads the stream %s", stream)
}

// monitorGet decodes the answer of the monitoring port, whatever its status.
func (s *natsServer) monitorGet(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, IOTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.monitor+path, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMonitorBytes))
	if err != nil {
		return err
	}
	return strictjson.UnmarshalAllowUnknown(body, into)
}

const maxMonitorBytes = 16 << 20
