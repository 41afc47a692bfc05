package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/app"
)

func TestCurrentRouter_ConnectsToRunningRouter(t *testing.T) {
	d := newCurrentRouter()
	defer d.clearAddr()
	ask := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, publicURL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := d.client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		return resp.Header.Get("Router"), nil
	}
	if _, err := ask(); !errors.Is(err, errRouterDown) {
		t.Errorf("before the first: got %v, want %v", err, errRouterDown)
	}
	for _, name := range []string{"first", "second"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Router", name) }))
		d.setAddr(strings.TrimPrefix(server.URL, "http://"))
		if got, err := ask(); got != name || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, name)
		}
		d.clearAddr()
		server.Close()
		if _, err := ask(); !errors.Is(err, errRouterDown) {
			t.Errorf("after the %s: got %v, want %v", name, err, errRouterDown)
		}
	}
}

func TestWriteConfig_IsValid(t *testing.T) {
	dir := t.TempDir()
	path, err := writeConfig(dir, "http://127.0.0.1:1", "retention: { max_bytes: 64MiB }")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := app.LoadConfig(path, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("Validate: got %v, want nil", err)
	}
	if cfg.DataDir != dataDir(dir) || cfg.PublicURL != publicURL || cfg.Listen != "127.0.0.1:0" || cfg.Store.Retention.MaxBytes != smallStore {
		t.Errorf("got data_dir %q, public_url %q, listen %q, max_bytes %s", cfg.DataDir, cfg.PublicURL, cfg.Listen, cfg.Store.Retention.MaxBytes)
	}
}

func TestNextOrder_ResendsUnansweredFirst(t *testing.T) {
	c := &cycleRun{testbed: &testbed{rng: newLockedRand(1)}}
	first, again := c.nextOrder()
	if again {
		t.Error("first order: got a resent one, want a new one")
	}
	c.queueOrder(order{key: "k"}, false)
	if o, again := c.nextOrder(); !again || o.key != "k" {
		t.Errorf("got key %q, again %v, want k, true", o.key, again)
	}
	if next, again := c.nextOrder(); again || string(next.body) == string(first.body) {
		t.Errorf("got %s again, want another order", next.body)
	}
}

func TestLockedRand_RepeatsWithSeed(t *testing.T) {
	a, b := newLockedRand(7), newLockedRand(7)
	for range 100 {
		if x, y := a.intN(6), b.intN(6); x != y || x < 0 || x > 5 {
			t.Fatalf("got %d and %d with the same seed, want the same number from 0 to 5", x, y)
		}
		if d := a.durationUpTo(time.Second); d < 0 || d > time.Second {
			t.Errorf("upTo a second: got %s", d)
		}
		b.durationUpTo(time.Second)
	}
	if !a.oneIn(1) {
		t.Error("oneIn(1): got false, want true")
	}
}
