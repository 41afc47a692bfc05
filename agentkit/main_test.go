package agentkit_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/agentkit"
	"github.com/caprouter/caprouter/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const taskID = "0195f3a0-7b1c-7000-8000-000000000001"

// fakeRouter has a key, serves its key set, and signs with it.
type fakeRouter struct {
	kid      string
	key      ed25519.PrivateKey
	ec       *ecdsa.PrivateKey // if not nil, it signs with this key and ES256
	status   atomic.Int64      // of the key set response; 0 = 200
	fetches  atomic.Int64
	redirect string // if not empty, the key set request is redirected to it
	server   *httptest.Server
	sent     int // number of tasks sent by send
}

// newKeyOnly returns a fakeRouter without a server.
func newKeyOnly() *fakeRouter {
	return &fakeRouter{kid: "k1", key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))}
}

// newES256KeyOnly returns a fakeRouter that signs with a P-256 key, without a server.
func newES256KeyOnly() *fakeRouter {
	r := newKeyOnly()
	r.ec = p256Key(7)
	return r
}

func p256Key(seed byte) *ecdsa.PrivateKey {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		panic(err)
	}
	return key
}

func newFakeRouter(t testing.TB) *fakeRouter { return startFakeRouter(t, newKeyOnly()) }

func startFakeRouter(t testing.TB, r *fakeRouter) *fakeRouter {
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

func (r *fakeRouter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.fetches.Add(1)
	if r.redirect != "" {
		http.Redirect(w, req, r.redirect, http.StatusFound)
		return
	}
	if status := r.status.Load(); status != 0 {
		w.WriteHeader(int(status))
		return
	}
	_, _ = fmt.Fprintf(w, `{"keys":[%s]}`, r.jwk(r.kid))
}

func (r *fakeRouter) jwk(kid string) string {
	if r.ec != nil {
		x, y := r.point()
		return fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q,"kid":%q,"use":"sig","alg":"ES256"}`, b64(x), b64(y), kid)
	}
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q,"kid":%q,"use":"sig","alg":"EdDSA"}`, b64(r.public()), kid)
}

func (r *fakeRouter) public() ed25519.PublicKey { return r.key.Public().(ed25519.PublicKey) }

// point returns the coordinates of the P-256 key.
func (r *fakeRouter) point() (x, y []byte) {
	point, err := r.ec.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	return point[1:33], point[33:]
}

// publicBytes returns the public key, as an attacker may use it as a secret.
func (r *fakeRouter) publicBytes() []byte {
	if r.ec != nil {
		x, y := r.point()
		return append(append([]byte{4}, x...), y...)
	}
	return r.public()
}

func (r *fakeRouter) alg() string {
	if r.ec != nil {
		return "ES256"
	}
	return "EdDSA"
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// object is a JSON object with members that a test can change.
type object map[string]any

func (o object) with(name string, value any) object {
	changed := object{}
	maps.Copy(changed, o)
	if changed[name] = value; value == nil {
		delete(changed, name)
	}
	return changed
}

func (o object) json() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (r *fakeRouter) header() object {
	return object{"typ": "at+jwt", "alg": r.alg(), "kid": r.kid}
}

func validClaims() object {
	now := time.Now().Unix()
	return object{
		"iss": "caprouter", "aud": "word_counter", "sub": "alice", "act": object{"sub": "caprouter"},
		"scope": "task:execute", "task_id": taskID, "iat": now, "exp": now + 60, "jti": "j1",
	}
}

// sign signs a token with this header and these claims, both JSON texts.
func (r *fakeRouter) sign(header, claims string) string {
	signed := b64([]byte(header)) + "." + b64([]byte(claims))
	return signed + "." + b64(r.signature(signed))
}

func (r *fakeRouter) signature(signed string) []byte {
	if r.ec == nil {
		return ed25519.Sign(r.key, []byte(signed))
	}
	sum := sha256.Sum256([]byte(signed))
	a, b, err := ecdsa.Sign(rand.Reader, r.ec, sum[:])
	if err != nil {
		panic(err)
	}
	sig := make([]byte, 64) // RFC 7518, section 3.4
	a.FillBytes(sig[:32])
	b.FillBytes(sig[32:])
	return sig
}

// token returns a signed token with these claims.
func (r *fakeRouter) token(claims object) string { return r.sign(r.header().json(), claims.json()) }

func validTask() object {
	return object{
		"task_id": taskID, "request_id": "r1", "trace_id": strings.Repeat("a", 32), "intent": "count_words", "domains": []string{"text"},
		"subtask_title": "Count", "inputs": object{"prompt": "one two three", "limit": 7},
		"deadline": time.Now().Add(time.Minute).UTC(), "attempt": 1,
	}
}

// countWords is the work function of most tests.
func countWords(_ context.Context, t contract.Task) (contract.Result, error) {
	return agentkit.Answer(fmt.Sprintf("%d words", len(strings.Fields(agentkit.Prompt(t))))), nil
}

// newAgent returns an agent that trusts the fake router; r and log may be nil.
func newAgent(t testing.TB, r *fakeRouter, log io.Writer, work agentkit.Work, change ...func(*agentkit.Config)) *agentkit.Agent {
	t.Helper()
	if log == nil {
		log = io.Discard
	}
	cfg := agentkit.Config{AgentID: "word_counter", Logger: slog.New(slog.NewTextHandler(log, nil))}
	if r != nil {
		cfg.JWKSURL, cfg.Client = r.server.URL, r.server.Client()
	}
	for _, c := range change {
		c(&cfg)
	}
	h, err := agentkit.New(cfg, work)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return h
}

// post returns a request like those of the router.
func post(path, token, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// result decodes a response that must be a Result.
func result(t testing.TB, w *httptest.ResponseRecorder) contract.Result {
	t.Helper()
	var res contract.Result
	if err := json.Unmarshal(w.Body.Bytes(), &res); err != nil || w.Code != http.StatusOK {
		t.Fatalf("got response %d %s (%v), want 200 and a Result", w.Code, w.Body, err)
	}
	return res
}

// checkProblem checks that the response is a problem with this status and a detail that contains
// the words.
func checkProblem(t testing.TB, w *httptest.ResponseRecorder, status int, words string) {
	t.Helper()
	var p struct {
		Status              int
		Title, Code, Detail string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("got response %d %s, want a problem document", w.Code, w.Body)
	}
	if w.Code != status || p.Status != status || p.Title == "" || p.Code == "" || !strings.Contains(p.Detail, words) {
		t.Errorf("got response %d %s, want status %d and a detail with %q", w.Code, w.Body, status, words)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type: got %q, want application/problem+json", got)
	}
}
