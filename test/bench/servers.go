package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/test/internal/process"
)

// roleArg as the first argument runs one of the servers, each in a process of its own
// so that its CPU time contains nothing else.
const roleArg = "serve"

func startServer(ctx context.Context, role string) (*process.Process, error) {
	return process.StartRole(ctx, role, roleArg, role)
}

// serveRole runs one role until the parent ends.
func serveRole(ctx context.Context, role string) error {
	kind, arg, _ := strings.Cut(role, "=")
	switch kind {
	case "echo":
		return process.ServeRole(ctx, http.HandlerFunc(echoJSON))
	case "agent":
		return process.ServeRole(ctx, http.HandlerFunc(completeTask))
	case "gateway":
		return process.ServeRole(ctx, newGateway(arg))
	case "router":
		return serveRouter(ctx, arg)
	}
	return fmt.Errorf("no role %q", role)
}

func serveRouter(ctx context.Context, dir string) error {
	cfg, err := app.LoadConfig(filepath.Join(dir, "caprouter.yaml"), nil)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := app.Start(ctx, cfg, app.Options{
		LogOutput: log, OwnProcess: true,
		LookupEnv: func(string) (string, bool) { return "", false }, // no model, whatever the environment contains
	})
	if err != nil {
		return err
	}
	return process.ServeRoleFunc(ctx, server.Addr(), func(ctx context.Context) error {
		<-ctx.Done()
		cancel()
		return server.Wait()
	})
}

// echoJSON is the baseline of the decision path: it decodes and encodes JSON.
func echoJSON(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// completeTask is the smallest agent: every task succeeds at once.
func completeTask(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"success","data":{"answer":"done"}}`)
}

// newGateway is the baseline of a route: it makes one call and returns the answer.
func newGateway(target string) http.Handler {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: process.IOTimeout}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, target, bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, resp.Body)
	})
}
