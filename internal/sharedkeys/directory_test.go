package sharedkeys

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/auth"
	"github.com/caprouter/caprouter/internal/auth/issuance"
	"github.com/caprouter/caprouter/internal/auth/jwk"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/contentkey"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

const (
	issuer   = "https://router.example"
	audience = "caprouter"
)

// newKeyring returns a keyring of keys that are derived from n.
func newKeyring(t *testing.T, ns ...byte) *contentkey.Keyring {
	t.Helper()
	var text strings.Builder
	for _, n := range ns {
		secret := make([]byte, 32)
		for i := range secret {
			secret[i] = n + byte(i)
		}
		text.WriteString(base64.StdEncoding.EncodeToString(secret) + "\n")
	}
	r, err := contentkey.Parse(text.String(), "the test's keys")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func openBucket(t *testing.T, srv *teststore.Server) *store.Bucket {
	t.Helper()
	b, err := teststore.OpenShared(t, srv, "test").Bucket(t.Context(), BucketConfig())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replica is a running replica.
type replica struct {
	t      *testing.T
	cfg    Config
	dir    string // of its signing keys
	log    *testkit.LogBuffer
	keys   *Directory
	verify *auth.Verifier
	issuer *issuance.Issuer
}

func newReplica(t *testing.T, srv *teststore.Server, name string, keys *contentkey.Keyring) *replica {
	t.Helper()
	r := &replica{t: t, dir: t.TempDir(), log: &testkit.LogBuffer{}}
	ring, err := keyring.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.cfg = Config{Bucket: openBucket(t, srv), Keys: keys, SigningKeys: ring, Replica: name, Logger: r.log.Logger()}
	if r.verify, err = auth.NewVerifier(auth.VerifierConfig{Audience: audience, Issuer: issuer, Own: ring}); err != nil {
		t.Fatal(err)
	}
	if r.issuer, err = issuance.New(ring, jwk.EdDSA); err != nil {
		t.Fatal(err)
	}
	return r
}

// start opens the directory and runs it until the test ends.
func (r *replica) start() *replica {
	r.t.Helper()
	var err error
	if r.keys, err = Open(r.t.Context(), r.cfg); err != nil {
		r.t.Fatal(err)
	}
	g := run.New(r.t.Context())
	g.Go("run", r.keys.Run)
	g.Go("follow", r.keys.Follow)
	r.t.Cleanup(func() {
		g.Stop(nil)
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	})
	return r
}

func (r *replica) callerToken() string {
	r.t.Helper()
	token, err := r.issuer.CallerToken(issuance.CallerGrant{Issuer: issuer, Audience: audience, Subject: "alice", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *replica) taskToken() string {
	r.t.Helper()
	token, err := r.issuer.TaskToken(issuer, contract.TaskGrant{AgentID: "a", RequestID: "r", TaskID: "t", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *replica) acceptsCaller(token string) bool {
	_, err := r.verify.Verify(r.t.Context(), token)
	return err == nil
}

func (r *replica) acceptsTask(token string) bool {
	_, err := r.issuer.VerifyTaskToken(issuer, token, time.Now())
	return err == nil
}

// publishes reports whether the key set contains the current key of another replica.
func (r *replica) publishes(of *replica) bool {
	return bytes.Contains(r.cfg.SigningKeys.JWKS(), []byte(`"kid":"`+of.cfg.SigningKeys.KeyID()+`"`))
}

func (r *replica) row(name string) store.Entry {
	r.t.Helper()
	e, err := r.cfg.Bucket.Get(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

func (r *replica) put(name string, value []byte) {
	r.t.Helper()
	if _, err := r.cfg.Bucket.Put(r.t.Context(), name, value); err != nil {
		r.t.Fatal(err)
	}
}

func TestDirectory_SharesKeys(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a := newReplica(t, srv, "a", newKeyring(t, 1)).start()
	own := a.callerToken()
	b := newReplica(t, srv, "b", newKeyring(t, 1)).start()
	if !b.publishes(a) || !b.acceptsCaller(own) || !b.acceptsTask(a.taskToken()) {
		t.Error("a replica does not know the keys of the others when it has started")
	}
	testkit.Eventually(t, "the first replica has the keys of the second one", func() bool { return a.publishes(b) })
	if !a.acceptsCaller(b.callerToken()) || !a.acceptsTask(b.taskToken()) {
		t.Error("a token of the second replica is not accepted by the first one")
	}
	// A replica that has stopped is still trusted for a while.
	token := b.callerToken()
	b.keys.Close(t.Context())
	c := newReplica(t, srv, "c", newKeyring(t, 1)).start()
	if !c.publishes(b) || !c.acceptsCaller(token) {
		t.Error("the keys of a replica that has stopped are not accepted")
	}
}

// The clock of a replica was ahead for a moment. Its keys are published with the correct time
// again, because other replicas ignore a row of the future, and the last one before expires.
func TestDirectory_PublishesAfterClockWasSetBack(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	var ahead atomic.Int64
	a := newReplica(t, srv, "a", newKeyring(t, 1))
	a.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	a.start()
	published := func() time.Duration {
		record := &announcement{}
		if e := a.row("replica.a"); a.keys.envelope.open(e.Key, e.Value, record) != nil {
			return 0
		}
		return time.Until(record.Issued)
	}
	ahead.Store(int64(6 * time.Hour))
	testkit.Eventually(t, "the keys are published with the wrong time", func() bool { return published() > time.Hour })
	ahead.Store(0)
	testkit.Eventually(t, "the keys are published with the correct time", func() bool { return published() < time.Minute })
	b := newReplica(t, srv, "b", newKeyring(t, 1)).start()
	if !b.publishes(a) || !b.acceptsCaller(a.callerToken()) {
		t.Errorf("the keys of the replica are not accepted: %s", b.log)
	}
}

func TestDirectory_PublishesRotationAndRevocation(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	a, b := newReplica(t, srv, "a", newKeyring(t, 1)).start(), newReplica(t, srv, "b", newKeyring(t, 1)).start()
	rotate := func(revoke bool) keyring.PublicKey {
		t.Helper()
		if _, err := keyring.Rotate(b.dir, revoke, time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.cfg.SigningKeys.Reload(time.Now()); err != nil {
			t.Fatal(err)
		}
		return b.cfg.SigningKeys.PublicKeys()[0]
	}
	caller, task := b.callerToken(), b.taskToken()
	keys := bytes.Count(a.cfg.SigningKeys.JWKS(), []byte(`"kid"`))
	rotate(false)
	testkit.Eventually(t, "the next key is published by the other replica", func() bool {
		return bytes.Count(a.cfg.SigningKeys.JWKS(), []byte(`"kid"`)) == keys+2 || keys == 2
	})
	testkit.Eventually(t, "tokens of the retired key are accepted", func() bool { return a.acceptsCaller(caller) && a.acceptsTask(task) })
	stolen := b.row("replica.b").Value
	rotate(true)
	testkit.Eventually(t, "tokens of the revoked key are rejected", func() bool { return !a.acceptsCaller(caller) && !a.acceptsTask(task) && !b.acceptsTask(task) })
	testkit.Eventually(t, "the new key is accepted", func() bool {
		return a.publishes(b) && a.acceptsCaller(b.callerToken()) && a.acceptsTask(b.taskToken()) && b.acceptsTask(a.taskToken())
	})
	// The row with the revoked key is stored again.
	a.put("replica.b", stolen)
	testkit.Eventually(t, "the row is restored", func() bool {
		record := &announcement{}
		e := b.row("replica.b")
		return a.keys.envelope.open(e.Key, e.Value, record) == nil && len(record.Keys) == 1
	})
	if a.acceptsCaller(caller) {
		t.Error("a replayed row was accepted")
	}
	// The other replica may see only the restored row.
	testkit.Eventually(t, "the replayed row is logged", func() bool { return strings.Contains(b.log.String(), errReplayed.Error()) })
}

// A program that can write to the store but does not have the content key cannot add a key.
func TestDirectory_RejectsForgedRows(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	otherStore := teststore.Serve(t, t.TempDir(), -1)
	a := newReplica(t, srv, "a", newKeyring(t, 1)).start()
	b := newReplica(t, srv, "b", newKeyring(t, 1)).start()
	foreign := newReplica(t, otherStore, "foreign", newKeyring(t, 1)).start() // has the same key, and another store
	attacker := newReplica(t, otherStore, "attacker", newKeyring(t, 1))
	forged := &envelope{keys: newKeyring(t, 9), storeID: a.keys.envelope.storeID} // with the name of the store as well
	announcement := announcement{Issued: time.Now(), Keys: attacker.cfg.SigningKeys.PublicKeys()}
	sealed := func(key string, record any) []byte {
		t.Helper()
		data, err := forged.seal(key, record)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	secrets := secretsRecord{Changes: 99, Secrets: []taskSecret{{Created: time.Now(), Secret: bytes.Repeat([]byte{1}, 32)}}}
	if err := attacker.cfg.SigningKeys.SetTaskSecrets([][]byte{secrets.Secrets[0].Secret}); err != nil {
		t.Fatal(err)
	}
	altered := bytes.Clone(b.row("replica.b").Value)
	altered[len(altered)-1] ^= 1
	rows := []struct {
		name, key string
		value     []byte
	}{
		{"in clear", "replica.x1", []byte(`{"issued":"2100-01-01T00:00:00Z","keys":[]}`)},
		{"empty", "replica.x2", nil},
		{"with another key", "replica.x3", sealed("replica.x3", announcement)},
		{"of another store", "replica.foreign", foreign.row("replica.foreign").Value},
		{"of another replica", "replica.x4", b.row("replica.b").Value},
		{"altered", "replica.x5", altered},
		{"instead of a replica's", "replica.b", sealed("replica.b", announcement)},
		{"secrets with another key", "task_secrets", sealed("task_secrets", secrets)},
		{"secrets of another store", "task_secrets", foreign.row("task_secrets").Value},
		{"secrets instead of a replica", "replica.x6", b.row("task_secrets").Value},
	}
	task := a.taskToken()
	for _, row := range rows {
		logged := func() int { return strings.Count(a.log.String(), `"row":"`+row.key+`"`) }
		before := logged()
		a.put(row.key, row.value)
		testkit.Eventually(t, "the row "+row.name+" is rejected", func() bool {
			return logged() > before
		})
		if a.publishes(foreign) || a.publishes(attacker) || a.acceptsCaller(foreign.callerToken()) || a.acceptsCaller(attacker.callerToken()) ||
			a.acceptsTask(foreign.taskToken()) || a.acceptsTask(attacker.taskToken()) {
			t.Errorf("a row %s added a key", row.name)
		}
		if !a.publishes(b) || !a.acceptsTask(task) {
			t.Errorf("a row %s removed a key", row.name)
		}
	}
	// A replica that starts now, before and after the other replicas have restored their rows.
	c := newReplica(t, srv, "c", newKeyring(t, 1)).start()
	testkit.Eventually(t, "the rows are restored", func() bool { return c.publishes(b) && c.acceptsTask(task) && a.acceptsTask(c.taskToken()) })
	if c.publishes(attacker) || c.publishes(foreign) || c.acceptsTask(attacker.taskToken()) {
		t.Error("a replica that starts later accepts a forged row")
	}
	// A deleted row is restored, too.
	for _, key := range []string{"replica.b", "task_secrets"} {
		deleted := b.row(key).Revision
		if err := a.cfg.Bucket.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the row "+key+" is restored", func() bool {
			e, err := a.cfg.Bucket.Get(t.Context(), key)
			return err == nil && e.Revision > deleted
		})
	}
	if !a.acceptsTask(task) || !a.publishes(b) {
		t.Error("a deleted row removed a key")
	}
}

func TestOpen_RefusesAnotherKeyring(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	first := newReplica(t, srv, "a", newKeyring(t, 1)).start()
	if !first.keys.ChoseKeyring() {
		t.Error("the first replica did not choose the keyring")
	}
	bucket := first.cfg.Bucket
	empty, err := contentkey.OpenExisting(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*contentkey.Keyring{"another key": newKeyring(t, 2), "no key": empty} {
		agreed, err := CheckKeyring(t.Context(), bucket, other)
		if !agreed || !contentkey.IsUnknownKey(err) || !strings.Contains(err.Error(), "store.encryption.key_file") {
			t.Errorf("%s: got %v and error %v, want one with the configuration", name, agreed, err)
		}
	}
	refused := newReplica(t, srv, "b", newKeyring(t, 2))
	if _, err := Open(t.Context(), refused.cfg); !contentkey.IsUnknownKey(err) {
		t.Errorf("got error %v, want the start refused", err)
	}
	if agreed, err := CheckKeyring(t.Context(), bucket, newKeyring(t, 1)); !agreed || err != nil {
		t.Errorf("the same key: got %v and error %v, want it accepted", agreed, err)
	}
	other := openBucket(t, teststore.Serve(t, t.TempDir(), -1))
	if agreed, err := CheckKeyring(t.Context(), other, newKeyring(t, 2)); agreed || err != nil {
		t.Errorf("a new store: got %v and error %v, want no keyring", agreed, err)
	}
}

// TestOpen_RotatesKeyring restarts two replicas one after the other in each step.
func TestOpen_RotatesKeyring(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	replicas := []*replica{newReplica(t, srv, "a", newKeyring(t, 1)), newReplica(t, srv, "b", newKeyring(t, 1))}
	restart := func(r *replica, keys *contentkey.Keyring) error {
		if r.keys != nil {
			r.keys.Close(t.Context())
		}
		r.cfg.Keys = keys
		d, err := Open(t.Context(), r.cfg)
		if err == nil {
			r.keys = d
		}
		return err
	}
	if err := errors.Join(restart(replicas[0], newKeyring(t, 1)), restart(replicas[1], newKeyring(t, 1))); err != nil {
		t.Fatal(err)
	}
	task := replicas[0].taskToken()
	if err := restart(replicas[0], newKeyring(t, 2, 1)); err == nil || !strings.Contains(err.Error(), "the running replica b does not have the key") {
		t.Errorf("a key that the other replica does not have: got error %v, want the start refused", err)
	}
	for _, step := range [][]byte{{1, 2}, {2, 1}, {2}} {
		for _, r := range replicas {
			if err := restart(r, newKeyring(t, step...)); err != nil {
				t.Fatalf("replica %s with keys %v: %v", r.cfg.Replica, step, err)
			}
		}
		if !replicas[1].acceptsTask(task) {
			t.Errorf("with keys %v: callback token rejected, want it accepted", step)
		}
	}
	if err := restart(replicas[0], newKeyring(t, 1)); !contentkey.IsUnknownKey(err) {
		t.Errorf("the old key: got error %v, want the start refused", err)
	}
}

// Two replicas that start at the same time agree on one keyring and one secret.
func TestOpen_FirstReplicasStartTogether(t *testing.T) {
	srv := teststore.Serve(t, t.TempDir(), -1)
	replicas := []*replica{newReplica(t, srv, "a", newKeyring(t, 1)), newReplica(t, srv, "b", newKeyring(t, 1))}
	errs := make([]error, len(replicas))
	run.ForEach(t.Context(), 2, 2, func(ctx context.Context, i int) { replicas[i].keys, errs[i] = Open(ctx, replicas[i].cfg) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	a, b := replicas[0], replicas[1]
	if a.keys.ChoseKeyring() == b.keys.ChoseKeyring() || a.keys.envelope.storeID != b.keys.envelope.storeID {
		t.Error("the replicas do not agree on one keyring")
	}
	if !a.acceptsTask(b.taskToken()) || !b.acceptsTask(a.taskToken()) {
		t.Error("the replicas do not agree on one secret")
	}
}
