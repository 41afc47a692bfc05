package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// sample is what one round of one subject cost.
type sample struct {
	cpuMicros            float64 // per request, of the serving process
	p50Millis, p99Millis float64 // as the client saw it
	rssMiB               float64
}

// measure sends one round of requests and reads what they cost the server.
func measure(ctx context.Context, s subject, cfg runConfig) (sample, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: cfg.clients}}
	defer client.CloseIdleConnections()
	took := make([]time.Duration, cfg.requests)
	var failed atomic.Pointer[error]

	before, err := s.proc.cpuTime()
	if err != nil {
		return sample{}, err
	}
	run.ForEach(ctx, cfg.clients, cfg.requests, func(ctx context.Context, i int) {
		if failed.Load() != nil {
			return
		}
		start := time.Now()
		if err := post(ctx, client, s); err != nil {
			failed.Store(&err)
		}
		took[i] = time.Since(start)
	})
	if err := failed.Load(); err != nil {
		return sample{}, *err
	}
	after, err := s.proc.cpuTime()
	if err != nil {
		return sample{}, err
	}
	rss, err := rssMiB(s.proc.pid())
	slices.Sort(took)
	return sample{
		cpuMicros: float64((after - before).Microseconds()) / float64(cfg.requests),
		p50Millis: took[len(took)/2].Seconds() * 1e3,
		p99Millis: took[len(took)*99/100].Seconds() * 1e3,
		rssMiB:    rss,
	}, err
}

func post(ctx context.Context, client *http.Client, s subject) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(s.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
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
	if resp.StatusCode != http.StatusOK || !bytes.Contains(answer, s.want) {
		return fmt.Errorf("answered %s without %s: %.200s", resp.Status, s.want, answer)
	}
	return nil
}

func rssMiB(pid int) (float64, error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("cannot read /proc/%d/statm", pid)
	}
	pages, err := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / (1 << 20), err
}

func median(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// ratios compares two subjects round by round, so that drift of the machine's
// speed cancels out.
func ratios(a, floor []sample) (least, mid, most float64) {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = a[i].cpuMicros / floor[i].cpuMicros
	}
	slices.Sort(values)
	return values[0], values[len(values)/2], values[len(values)-1]
}
