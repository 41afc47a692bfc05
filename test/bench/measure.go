package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caprouter/caprouter/internal/run"
)

// sample contains the measurements of one round of one subject.
type sample struct {
	cpuMicros            float64 // per request, of the serving process
	p50Millis, p99Millis float64 // latency of the client
	rssMiB               float64
}

// measureRound sends one round of requests and measures the server.
func measureRound(ctx context.Context, s subject, cfg runConfig) (sample, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: cfg.clients}}
	defer client.CloseIdleConnections()
	took := make([]time.Duration, cfg.requests)
	var failed atomic.Pointer[error]

	before, err := s.proc.CPUTime()
	if err != nil {
		return sample{}, err
	}
	run.ForEach(ctx, cfg.clients, cfg.requests, func(ctx context.Context, i int) {
		if failed.Load() != nil {
			return
		}
		start := time.Now()
		if err := postRequest(ctx, client, s); err != nil {
			failed.Store(&err)
		}
		took[i] = time.Since(start)
	})
	if err := failed.Load(); err != nil {
		return sample{}, *err
	}
	after, err := s.proc.CPUTime()
	if err != nil {
		return sample{}, err
	}
	slices.Sort(took)
	return sample{
		cpuMicros: float64((after - before).Microseconds()) / float64(cfg.requests),
		p50Millis: took[len(took)/2].Seconds() * 1e3,
		p99Millis: took[len(took)*99/100].Seconds() * 1e3,
		rssMiB:    s.proc.RSSMiB(),
	}, nil
}

func postRequest(ctx context.Context, client *http.Client, s subject) error {
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

func medianOf(samples []sample, of func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// compareRounds compares a subject with its baseline round by round, so that changes of
// the machine's speed cancel out.
func compareRounds(a, baseline []sample) (least, mid, most float64) {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = a[i].cpuMicros / baseline[i].cpuMicros
	}
	slices.Sort(values)
	return values[0], values[len(values)/2], values[len(values)-1]
}
