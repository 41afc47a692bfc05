package examples_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

// agentRouter is a fake router for one agent.
type agentRouter struct {
	server   *httptest.Server
	edKey    ed25519.PrivateKey
	ecKey    *ecdsa.PrivateKey
	declared chan contract.Registration
	calls    chan string // method and path, without the instance

	mu    sync.Mutex
	reply map[string][]int // statuses of the next replies by call; then the default one
}

func newAgentRouter(t *testing.T) *agentRouter {
	t.Helper()
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &agentRouter{
		edKey: edKey, ecKey: ecKey, declared: make(chan contract.Registration, 16),
		calls: make(chan string, 1024), reply: map[string][]int{},
	}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *agentRouter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	call := req.Method + " " + strings.TrimPrefix(req.URL.Path, "/api/v1/agents/word_counter")
	if call == "GET /.well-known/jwks.json" {
		_, _ = io.WriteString(w, r.keySet())
		return
	}
	if req.Header.Get("Authorization") != "Bearer secret" {
		call += " without a token"
	}
	r.calls <- call
	if status := r.nextStatus(call); status != 0 {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"title":"a problem"}`)
		return
	}
	switch call {
	case "PUT ":
		var declared contract.Registration
		if err := json.NewDecoder(req.Body).Decode(&declared); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
		r.declared <- declared
	case "DELETE ":
		if req.URL.Query().Get("instance") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_, _ = io.WriteString(w, `{"agent_id":"word_counter","state":"active","heartbeat_s":1,"refused":[]}`)
}

func (r *agentRouter) nextStatus(call string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	statuses := r.reply[call]
	if len(statuses) == 0 {
		return 0
	}
	r.reply[call] = statuses[1:]
	return statuses[0]
}

func (r *agentRouter) keySet() string {
	public := r.edKey.Public().(ed25519.PublicKey)
	point, err := r.ecKey.PublicKey.Bytes() // 4, x, y
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","kid":"ed","x":%q},
		{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"ec","x":%q,"y":%q}]}`, b64(public), b64(point[1:33]), b64(point[33:]))
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// sign returns a token with these claims in addition to the valid ones.
func (r *agentRouter) sign(t *testing.T, header map[string]any, change map[string]any) string {
	t.Helper()
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": "caprouter", "aud": "word_counter", "sub": "alice", "scope": "task:execute", "task_id": "t1",
		"iat": now, "exp": now + 60, "jti": "j1",
	}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	text := b64(encode(t, header)) + "." + b64(encode(t, claims))
	var signature []byte
	if header["kid"] == "ec" {
		hash := sha256.Sum256([]byte(text))
		x, y, err := ecdsa.Sign(rand.Reader, r.ecKey, hash[:])
		if err != nil {
			t.Fatal(err)
		}
		signature = append(x.FillBytes(make([]byte, 32)), y.FillBytes(make([]byte, 32))...)
	} else {
		signature = ed25519.Sign(r.edKey, []byte(text))
	}
	return text + "." + b64(signature)
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startAgent starts the program with the environment of an agent of this router, see
// startProgram.
func (r *agentRouter) startAgent(t *testing.T, env []string, program string, args ...string) (stop func() error) {
	t.Helper()
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return startProgram(t, append(env, "ROUTER_URL="+r.server.URL, "TOKEN_FILE="+tokenFile), program, args...)
}

// startProgram starts the program. The returned function sends SIGTERM and returns the
// error of the process.
func startProgram(t *testing.T, env []string, program string, args ...string) (stop func() error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = testkit.Patience
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ended error
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		testkit.WaitClosed(t, done)
		if t.Failed() {
			t.Logf("output of %s:\n%s", program, output.String())
		}
	})
	return func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		testkit.WaitClosed(t, done)
		return ended
	}
}

// checkCalls checks the next calls; repetitions count once.
func (r *agentRouter) checkCalls(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		if got = slices.Compact(append(got, testkit.Receive(t, r.calls))); !slices.Equal(got, want[:len(got)]) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("calls (-want +got):\n%s", diff)
	}
}
