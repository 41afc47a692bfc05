package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/run"
)

// sequentialShare is the part of the requests that is sent over one connection.
const sequentialShare = 8

// drainTimeout bounds the wait for the end of asynchronous requests.
const drainTimeout = 2 * time.Minute

// sample contains the measurements of one round of one subject. CPU and memory are 0 if
// the subject has no server.
type sample struct {
	CPUMicros float64 `json:"cpu_us"` // per request, of the serving process
	P50Millis float64 `json:"p50_ms"` // latency of the client
	P99Millis float64 `json:"p99_ms"`
	Allocs    float64 `json:"allocs"` // per request
	AllocKiB  float64 `json:"alloc_kib"`
	RSSMiB    float64 `json:"rss_mib"` // after the round
	PeakMiB   float64 `json:"peak_mib"`
}

// loaded can be measured under load.
type loaded interface {
	measure(ctx context.Context, clients, requests int) (sample, error)
	startMillis() float64 // until it listened
}

// subject is a scenario with its running server.
type subject struct {
	scenario
	loaded
}

// result contains all rounds of one scenario.
type result struct {
	scenario
	startMillis float64
	rounds      []sample // with all connections
	single      []sample // with one connection, if the scenario is measured that way
}

// measureRounds measures all subjects in turn, in each round. The first round is a
// warm-up.
func measureRounds(ctx context.Context, cfg runConfig, subjects []subject) ([]result, error) {
	results := make([]result, len(subjects))
	for round := range cfg.rounds + 1 {
		for i, s := range subjects {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-40s", round, cfg.rounds, s.name)
			got, err := s.measure(ctx, cfg.clients, cfg.requests)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			var single sample
			if s.sequential {
				if single, err = s.measure(ctx, 1, max(cfg.requests/sequentialShare, 1)); err != nil {
					return nil, fmt.Errorf("%s over one connection: %w", s.name, err)
				}
			}
			if round == 0 {
				results[i] = result{scenario: s.scenario, startMillis: s.startMillis()}
				continue
			}
			results[i].rounds = append(results[i].rounds, got)
			if s.sequential {
				results[i].single = append(results[i].single, single)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	return results, nil
}

// loadedServer is a server and what the clients send to it.
type loadedServer struct {
	server  *server
	request request
	token   string // of the caller, or ""
}

func (l *loadedServer) startMillis() float64 { return millis(l.server.process.StartTime) }

// measure sends one round of requests and measures the server.
func (l *loadedServer) measure(ctx context.Context, clients, requests int) (sample, error) {
	before, err := l.server.readUsage(ctx)
	if err != nil {
		return sample{}, err
	}
	s, err := l.sendAll(ctx, clients, requests)
	if err != nil {
		return sample{}, err
	}
	after, err := l.server.readUsage(ctx)
	n := float64(requests)
	s.CPUMicros = millis(after.CPU-before.CPU) * 1e3 / n
	s.Allocs = float64(after.Allocs-before.Allocs) / n
	s.AllocKiB = float64(after.Bytes-before.Bytes) / (1 << 10) / n
	s.RSSMiB, s.PeakMiB = float64(after.RSSKiB)/(1<<10), float64(after.PeakKiB)/(1<<10)
	return s, err
}

// sendAll sends the requests and waits until the server has done the work.
func (l *loadedServer) sendAll(ctx context.Context, clients, requests int) (sample, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	took := make([]time.Duration, requests)
	var failed atomic.Pointer[error]
	run.ForEach(ctx, clients, requests, func(ctx context.Context, i int) {
		if failed.Load() != nil {
			return
		}
		start := time.Now()
		if err := l.post(ctx, client); err != nil {
			failed.Store(&err)
		}
		took[i] = time.Since(start)
	})
	if err := failed.Load(); err != nil {
		return sample{}, *err
	}
	if l.request.background {
		if err := l.drain(ctx, client); err != nil {
			return sample{}, err
		}
	}
	return latencies(took), nil
}

func (l *loadedServer) post(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.server.url+l.request.path, strings.NewReader(l.request.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if l.request.accept != "" {
		req.Header.Set("Accept", l.request.accept)
	}
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != l.request.status || !bytes.Contains(answer, []byte(l.request.want)) {
		return fmt.Errorf("got %s, want %d and %s: %.400s", resp.Status, l.request.status, l.request.want, answer)
	}
	return nil
}

// drain waits until no asynchronous request is open.
func (l *loadedServer) drain(ctx context.Context, client *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for resilience.Sleep(ctx, 50*time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.server.url+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || bytes.Contains(page, []byte("\ncaprouter_requests_open 0\n")) {
			return err
		}
	}
	return fmt.Errorf("wait for asynchronous requests: %w", ctx.Err())
}

// fsyncWriter is the floor of a durable record: one writer that appends and syncs.
type fsyncWriter struct{ path string }

func (w *fsyncWriter) startMillis() float64 { return 0 }

// measure writes as many records as are sent over one connection, whatever the number
// of clients.
func (w *fsyncWriter) measure(_ context.Context, clients, requests int) (sample, error) {
	if clients > 1 {
		requests = max(requests/sequentialShare, 1)
	}
	file, err := os.OpenFile(w.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return sample{}, err
	}
	defer file.Close()
	record, took := make([]byte, 4<<10), make([]time.Duration, requests)
	for i := range took {
		start := time.Now()
		if _, err := file.Write(record); err != nil {
			return sample{}, err
		}
		if err := file.Sync(); err != nil {
			return sample{}, err
		}
		took[i] = time.Since(start)
	}
	return latencies(took), nil
}

// latencies sorts the durations.
func latencies(took []time.Duration) sample {
	slices.Sort(took)
	return sample{P50Millis: millis(took[len(took)/2]), P99Millis: millis(took[len(took)*99/100])}
}

func millis(d time.Duration) float64 { return d.Seconds() * 1e3 }
