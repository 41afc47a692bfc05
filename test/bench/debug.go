package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

// Paths of the second listener of a role, which a router in production does not have.
const (
	pathUsage        = "/usage"
	pathProfileStart = "/profile/start"
	pathProfileStop  = "/profile/stop" // answers with the CPU profile
)

// usage contains the resources that a process has used since its start.
type usage struct {
	CPU             time.Duration // user and system
	Allocs, Bytes   uint64        // on the heap
	RSSKiB, PeakKiB uint64        // resident memory; 0 if the system does not report it
}

// serveWithDebug runs serve, which listens at addr, until the parent ends, and serves
// the second listener meanwhile. The parent receives both addresses.
func serveWithDebug(ctx context.Context, addr string, serve func(context.Context) error) error {
	listener, err := listenLoopback(ctx)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathUsage, serveUsage)
	var cpu bytes.Buffer // written while the profile runs
	mux.HandleFunc("GET "+pathProfileStart, func(w http.ResponseWriter, _ *http.Request) {
		cpu.Reset()
		if err := pprof.StartCPUProfile(&cpu); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	mux.HandleFunc("GET "+pathProfileStop, func(w http.ResponseWriter, _ *http.Request) {
		pprof.StopCPUProfile()
		_, _ = cpu.WriteTo(w)
	})
	return process.ServeRoleFunc(ctx, addr+" "+listener.Addr().String(), func(ctx context.Context) error {
		group := run.New(ctx)
		group.Go("serve", serve)
		group.Go("debug", func(ctx context.Context) error { return process.ServeUntilDone(ctx, listener, mux) })
		return group.Wait()
	})
}

func serveUsage(w http.ResponseWriter, _ *http.Request) {
	u, err := readUsage()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(u)
}

func readUsage() (u usage, err error) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	u.Allocs, u.Bytes = samples[0].Value.Uint64(), samples[1].Value.Uint64()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &u.RSSKiB)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &u.PeakKiB)
	}
	var spent syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &spent)
	u.CPU = time.Duration(spent.Utime.Nano() + spent.Stime.Nano())
	return u, err
}

// fetch returns the body of a request to the second listener.
func (s *server) fetch(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.debugURL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", path, resp.Status, body)
	}
	return body, err
}

func (s *server) readUsage(ctx context.Context) (u usage, err error) {
	body, err := s.fetch(ctx, pathUsage)
	if err == nil {
		err = json.Unmarshal(body, &u)
	}
	return u, err
}
