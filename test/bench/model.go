package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/test/internal/process"
)

// failingModelsName selects the second table in -only.
const failingModelsName = "failing-models"

const (
	modelTimeout       = 300 * time.Millisecond // classifier.timeout_ms
	concurrentRequests = 64                     // concurrent, before the circuit breaker opens
	sequentialRequests = 400                    // sequential, after it has opened
)

// failingModel is a model that fails in one way.
type failingModel struct {
	name  string
	serve http.HandlerFunc
}

// failingModels returns the failing models. Each handler ends with its request.
func failingModels() []failingModel {
	return []failingModel{
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"headers, then silence", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		{"429, retry after 1 s", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`, http.StatusTooManyRequests)
		}},
		{"429, retry at once", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`, http.StatusTooManyRequests)
		}},
		{"500", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"code":500}}`, http.StatusInternalServerError)
		}},
	}
}

// benchModel measures dry runs with a failing model. Each has a different prompt, so
// that none is answered from the cache.
func benchModel(ctx context.Context) error {
	fmt.Printf("\nFailing models; classifier.timeout_ms %d, %d concurrent requests, then %d sequential ones; the baseline is mode lexical\n",
		modelTimeout.Milliseconds(), concurrentRequests, sequentialRequests)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "provider\tfailure\tmax ms\tover the deadline ms\tthen p50 ms\tp99 ms\tadded p50 ms\tcalls/request")
	baseline, err := benchFailing(ctx, "lexical", "gemini", failingModels()[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "none\t(mode lexical)\t%.1f\t\t%.2f\t%.2f\tbaseline\t0\n", baseline.maxMS, baseline.p50, baseline.p99)
	for _, provider := range []string{"gemini", "genai", "openai"} {
		for _, f := range failingModels() {
			fmt.Fprintf(os.Stderr, "\r%-60s", provider+", "+f.name)
			got, err := benchFailing(ctx, "llm", provider, f)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", provider, f.name, err)
			}
			over := math.Max(0, got.maxMS-float64(modelTimeout.Milliseconds()))
			fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.2f\t%.2f\t%+.2f\t%.3f\n",
				provider, f.name, got.maxMS, over, got.p50, got.p99, got.p50-baseline.p50, got.callsPerRequest)
		}
	}
	fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	return w.Flush()
}

// modelSample contains the measurements of one failing model.
type modelSample struct{ maxMS, p50, p99, callsPerRequest float64 }

func benchFailing(ctx context.Context, mode, provider string, f failingModel) (s modelSample, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var calls atomic.Int64
	group := run.New(ctx)
	defer func() { cancel(); err = errors.Join(err, group.Wait()) }()
	model, err := serveModel(ctx, group, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // so that the server detects a disconnected caller
		f.serve(w, r)
	}))
	if err != nil {
		return s, err
	}
	server, stop, err := startModelRouter(ctx, mode, provider, model)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	first := make([]float64, concurrentRequests)
	errs := make([]error, concurrentRequests)
	run.ForEach(ctx, concurrentRequests, concurrentRequests, func(ctx context.Context, i int) {
		first[i], errs[i] = timeRoute(ctx, server, i)
	})
	later := make([]float64, sequentialRequests)
	for i := range later {
		if later[i], err = timeRoute(ctx, server, concurrentRequests+i); err != nil {
			return s, err
		}
	}
	slices.Sort(later)
	return modelSample{
		maxMS: slices.Max(first), p50: later[len(later)/2], p99: later[len(later)*99/100],
		callsPerRequest: float64(calls.Load()) / (concurrentRequests + sequentialRequests),
	}, errors.Join(errs...)
}

func serveModel(ctx context.Context, group *run.Group, h http.Handler) (url string, err error) {
	listener, err := listenLoopback(ctx)
	if err != nil {
		return "", err
	}
	group.Go("model", func(ctx context.Context) error { return process.ServeUntilDone(ctx, listener, h) })
	return "http://" + listener.Addr().String(), nil
}

// startModelRouter starts a router with the model at the address.
func startModelRouter(ctx context.Context, mode, provider, model string) (url string, stop func() error, err error) {
	dir, err := os.MkdirTemp("", "caprouter-bench-")
	if err != nil {
		return "", nil, err
	}
	var bed testbed // the agents have no endpoint
	if err := bed.writeConfig(dir, routerConfig{sync: syncAlways}); err != nil {
		return "", nil, err
	}
	cfg, err := config.Load(filepath.Join(dir, "caprouter.yaml"), nil)
	if err != nil {
		return "", nil, err
	}
	cfg.Classifier.Mode = mode
	cfg.Classifier.TimeoutMS = int(modelTimeout.Milliseconds())
	cfg.LLM.Provider, cfg.LLM.BaseURL, cfg.LLM.Model = provider, model, "a-model"
	cfg.Telemetry.LogLevel = "error"
	ctx, cancel := context.WithCancel(ctx)
	server, err := app.Start(ctx, cfg, app.Options{
		LogOutput: io.Discard,
		LookupEnv: func(string) (string, bool) { return "not-a-key", true },
	})
	if err != nil {
		cancel()
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return "http://" + server.Addr(), func() error {
		cancel()
		return errors.Join(server.Wait(), os.RemoveAll(dir))
	}, nil
}

// timeRoute routes one dry run and returns the duration in ms. The answer is a decision,
// even if the model fails.
func timeRoute(ctx context.Context, server string, i int) (float64, error) {
	body := fmt.Sprintf(`{"content":{"prompt":"Please do a code review of python module %d"},"options":{"dry_run":true}}`, i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/api/v1/route", bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct{ Status string }
	err = json.NewDecoder(resp.Body).Decode(&answer)
	took := time.Since(start)
	if err == nil && answer.Status != "accepted" {
		err = fmt.Errorf("got status %q and HTTP %d, want accepted", answer.Status, resp.StatusCode)
	}
	return float64(took) / float64(time.Millisecond), err
}
