package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// routerRole is the argument with which the test binary runs a router, so that a test can kill it.
const routerRole = "router"

// runRouter runs a router with the configuration file, and prints its address. It
// returns the exit code.
func runRouter(configFile string) int {
	cfg, err := config.Load(configFile, noEnv)
	var s *Server
	if err == nil {
		s, err = Start(context.Background(), cfg, Options{LogOutput: os.Stderr, LookupEnv: noEnv})
	}
	if err == nil {
		fmt.Println(s.Addr())
		err = s.Wait()
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// killableReplica is a replica in its own process.
type killableReplica struct {
	addr, config string
	process      *os.Process
}

// startKillable starts a replica on the store. It is killed at the end of the test at the latest.
func startKillable(t *testing.T, store *teststore.Server, registry string) *killableReplica {
	t.Helper()
	dir := t.TempDir()
	r := &killableReplica{config: filepath.Join(dir, "caprouter.yaml")}
	config := fmt.Sprintf("listen: 127.0.0.1:0\ndata_dir: %s\nregistry: { file: %s }\nstore: { url: %q, encryption: { key_file: %s }, sync: 10s }\n",
		filepath.Join(dir, "data"), filepath.Join(dir, "capabilities.yaml"), store.URL, writeSecret(t, keyOfTests))
	for path, text := range map[string]string{r.config: config, filepath.Join(dir, "capabilities.yaml"): registry} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.start(t)
	return r
}

// start starts a process with the configuration file. It is killed at the end of the test at the
// latest.
func (r *killableReplica) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], routerRole, r.config)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	r.process = cmd.Process
	t.Cleanup(func() {
		r.kill()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("start the replica: %v", err)
	}
	r.addr = strings.TrimSpace(line)
}

// kill ends the replica with SIGKILL. A second call has no effect.
func (r *killableReplica) kill() { _ = r.process.Kill() }

func (r *killableReplica) url(path string) string { return "http://" + r.addr + path }

// unfinishedAgent returns an agent that accepts tasks of asynchronous requests with 202, and does
// not answer others until the test ends. It sends each task to the channel.
func unfinishedAgent(t *testing.T) (registry string, tasks chan contract.Task) {
	t.Helper()
	tasks = make(chan contract.Task, 8)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var task contract.Task
		if err := json.NewDecoder(r.Body).Decode(&task); err != nil {
			t.Errorf("task: %v", err)
		}
		tasks <- task
		if strings.Contains(string(task.Inputs["prompt"]), "later") {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		select {
		case <-t.Context().Done():
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return "clients:\n" + entry("slow", "count_words", "text", server.URL), tasks
}

// A killed replica leaves a request without an outcome. Another one records the outcome and signs
// the end of the chain, which then verifies.
func TestChainCloser_ClosesChainOfKilledReplica(t *testing.T) {
	t.Parallel()
	registry, tasks := unfinishedAgent(t)
	srv := teststore.Serve(t, t.TempDir(), -1)
	killed, s := startKillable(t, srv, registry), startReplica(t, srv, registry)
	s.awaitReplicas(2)
	callerEnded := make(chan error, 1)
	go func() {
		resp, err := http.Post(killed.url("/api/v1/route"), "application/json", strings.NewReader(`{"content":{"prompt":"count words of this text"}}`))
		if err == nil {
			_ = resp.Body.Close()
		}
		callerEnded <- err
	}()
	id := testkit.Receive(t, tasks).RequestID
	killed.kill()
	if err := testkit.Receive(t, callerEnded); err == nil {
		t.Error("got a response of the killed replica")
	}
	s.awaitReplicas(1)
	members, log := s.core.persistence.members, s.core.persistence.auditLog
	closer := newChainCloser(func(ctx context.Context, replica string) (int, error) {
		return s.core.router.CloseReplica(ctx, log, replica)
	})
	gone := time.Now()
	for _, step := range []struct {
		at   time.Duration
		want int
	}{{0, 0}, {closeChainAfter, 1}, {closeChainAfter + time.Minute, 0}} {
		if ended, err := closer.closeDead(t.Context(), members.Members(), gone.Add(step.at)); ended != step.want || err != nil {
			t.Errorf("after %s: got %d chain ends, %v, want %d", step.at, ended, err, step.want)
		}
	}
	if found, err := log.Find(t.Context(), id); err != nil || found.Outcome == nil {
		t.Errorf("outcome in the audit log: got %+v, %v", found.Outcome, err)
	}
	if resp := s.awaitEnd(id); resp.Status != contract.StatusFailed {
		t.Errorf("request: got %s, want failed", resp.Status)
	}
	cfg, err := config.Load(killed.config, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	verified := verifiedChains(t, &cfg, cfg.DataDir)
	for writer, ok := range verifiedChains(t, &cfg, s.core.cfg.DataDir) {
		if !ok && !verified[writer] {
			t.Errorf("got a valid chain of %s with the keys of no replica", writer)
		}
	}
	if len(verified) != 2 {
		t.Errorf("got chains %v, want two", verified)
	}
}

// verifiedChains verifies the chains in the store with the keys of a data directory, and returns
// the valid ones. The only permitted error of the others is a head that was signed with an unknown
// key.
func verifiedChains(t *testing.T, cfg *config.Config, dataDir string) map[string]bool {
	t.Helper()
	signer, err := keyring.Open(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := VerifyStoreURL(t.Context(), cfg, signer, func(uint64, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	verified := map[string]bool{}
	for _, chain := range report.Chains {
		verified[chain.Writer] = chain.OK()
		for _, p := range chain.Problems {
			if p.Kind != audit.ProblemHeadUnknownKey {
				t.Errorf("chain %s: %+v", chain.Writer, p)
			}
		}
	}
	return verified
}

// If the replica of a request is killed, another replica continues the event stream, even for a
// reader that was connected to the killed one.
func TestReplicas_StreamEventsOfKilledReplica(t *testing.T) {
	t.Parallel()
	registry, tasks := unfinishedAgent(t)
	srv := teststore.Serve(t, t.TempDir(), -1)
	killed, s := startKillable(t, srv, registry), startReplica(t, srv, registry)
	s.awaitReplicas(2)
	resp, err := http.Post(killed.url("/api/v1/route"), "application/json",
		strings.NewReader(`{"content":{"prompt":"count words of this text later"},"options":{"mode":"async"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	task := testkit.Receive(t, tasks)
	path := "/api/v1/requests/" + task.RequestID + "/events"
	other := followStream(t, s.url(path), "")
	first := followStream(t, killed.url(path), "")
	last := first.awaitEvent("task.started")
	other.awaitEvent("task.started")
	killed.kill()
	testkit.WaitClosed(t, first.ended)
	resumed := followStream(t, s.url(path), last)
	testkit.Eventually(t, "the other replica accepts the result", func() bool {
		got := s.do(call{
			method: "POST", path: "/api/v1/tasks/" + task.TaskID + "/result", token: task.Callback.Token,
			body: fmt.Sprintf(`{"task_id":%q,"status":"success","data":{"answer":"six words"}}`, task.TaskID),
		})
		return got.status == http.StatusOK
	})
	for name, stream := range map[string]*eventStream{"other replica": other, "resumed": resumed} {
		testkit.WaitClosed(t, stream.ended)
		if text := stream.text.String(); strings.Count(text, "event: final") != 1 || !strings.Contains(text, "six words") {
			t.Errorf("stream of %s:\n%s\nwant one final event with the answer", name, text)
		}
	}
	if text := resumed.text.String(); strings.Contains(text, "id: "+last+"\n") {
		t.Errorf("got event %s repeated in the resumed stream:\n%s", last, text)
	}
}

// eventStream reads a stream of events in the background.
type eventStream struct {
	t     *testing.T
	text  *testkit.LogBuffer
	ended chan struct{}
}

// followStream reads a stream after the last event; "" = from the start.
func followStream(t *testing.T, url, last string) *eventStream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	s := &eventStream{t: t, text: &testkit.LogBuffer{}, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer resp.Body.Close()
		_, _ = io.Copy(s.text, resp.Body) // a killed router breaks the stream
	}()
	return s
}

// awaitEvent waits for an event of this type, and returns its id.
func (s *eventStream) awaitEvent(name string) (id string) {
	s.t.Helper()
	testkit.Eventually(s.t, "the event "+name, func() bool {
		for event := range strings.SplitSeq(s.text.String(), "\n\n") {
			if !strings.Contains(event, "event: "+name) || !strings.Contains(event, "data: ") {
				continue
			}
			for line := range strings.Lines(event) {
				if after, ok := strings.CutPrefix(line, "id: "); ok {
					id = strings.TrimSpace(after)
				}
			}
			return true
		}
		return false
	})
	return id
}
