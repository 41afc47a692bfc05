package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/test/internal/process"
)

// roleArg as the first argument runs one of the servers, each in a process of its own
// so that its CPU time contains nothing else.
const roleArg = "serve"

// Kinds of servers. A role is a kind and its argument.
const (
	kindAgent   = "agent"
	kindEcho    = "echo"
	kindFsync   = "fsync" // no server
	kindGateway = "gateway"
	kindRouter  = "router"
)

// server is a role that was started. Besides its own requests it answers those of the
// driver on a second listener, see debug.go.
type server struct {
	process       *process.Process
	url, debugURL string
}

func startServer(ctx context.Context, role string) (*server, error) {
	p, err := process.StartRole(ctx, role, roleArg, role)
	if err != nil {
		return nil, err
	}
	addr, debugAddr, _ := strings.Cut(p.Addr(), " ")
	return &server{process: p, url: "http://" + addr, debugURL: "http://" + debugAddr}, nil
}

// serveRole runs one role until the parent ends.
func serveRole(ctx context.Context, role string) error {
	kind, arg, _ := strings.Cut(role, "=")
	switch kind {
	case kindEcho:
		return serveHandler(ctx, http.HandlerFunc(echoJSON))
	case kindAgent:
		return serveHandler(ctx, http.HandlerFunc(completeTask))
	case kindGateway:
		return serveHandler(ctx, newGateway(arg))
	case kindRouter:
		return serveRouter(ctx, arg)
	}
	return fmt.Errorf("no role %q", role)
}

func serveHandler(ctx context.Context, h http.Handler) error {
	listener, err := listenLoopback(ctx)
	if err != nil {
		return err
	}
	return serveWithDebug(ctx, listener.Addr().String(), func(ctx context.Context) error {
		return process.ServeUntilDone(ctx, listener, h)
	})
}

func serveRouter(ctx context.Context, dir string) error {
	cfg, err := config.Load(filepath.Join(dir, "caprouter.yaml"), nil)
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
	return serveWithDebug(ctx, server.Addr(), func(ctx context.Context) error {
		<-ctx.Done()
		cancel()
		return server.Wait()
	})
}

func listenLoopback(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// echoJSON is the floor of the decision path: it decodes and encodes JSON.
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

// newGateway is the floor of a route: it makes one call and returns the answer.
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
