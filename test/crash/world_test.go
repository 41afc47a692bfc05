package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/app"
)

func TestDoorLeadsToTheRouterThatIsUp(t *testing.T) {
	d := newDoor()
	defer d.shut()
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
	if _, err := ask(); !errors.Is(err, errDown) {
		t.Errorf("before the first: got %v, want %v", err, errDown)
	}
	for _, name := range []string{"first", "second"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Router", name) }))
		d.open(strings.TrimPrefix(server.URL, "http://"))
		if got, err := ask(); got != name || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, name)
		}
		d.shut()
		server.Close()
		if _, err := ask(); !errors.Is(err, errDown) {
			t.Errorf("after the %s: got %v, want %v", name, err, errDown)
		}
	}
}

func TestConfigIsWhatTheRouterReads(t *testing.T) {
	dir := t.TempDir()
	path, err := writeConfig(dir, "http://127.0.0.1:1")
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
	if cfg.DataDir != dataDir(dir) || cfg.PublicURL != publicURL || cfg.Listen != "127.0.0.1:0" {
		t.Errorf("got data_dir %q, public_url %q, listen %q", cfg.DataDir, cfg.PublicURL, cfg.Listen)
	}
}

func TestEnvironmentConfiguresNothing(t *testing.T) {
	t.Setenv("CAPROUTER_LISTEN", "0.0.0.0:1")
	t.Setenv("GEMINI_API_KEY", "key")
	t.Setenv("OTHER", "kept")
	got := environment()
	for _, name := range []string{"CAPROUTER_LISTEN=", "GEMINI_API_KEY="} {
		if slices.ContainsFunc(got, func(entry string) bool { return strings.HasPrefix(entry, name) }) {
			t.Errorf("%s is handed on", name)
		}
	}
	if !slices.Contains(got, "OTHER=kept") {
		t.Error("OTHER is not handed on")
	}
}

func TestOrdersThatWereNotAnsweredComeFirst(t *testing.T) {
	c := &cycles{world: &world{dice: newDice(1)}}
	first, again := c.next(1)
	if again {
		t.Error("the first order was sent before")
	}
	c.putBack(order{key: "k"})
	if o, again := c.next(2); !again || o.key != "k" || c.resent != 1 {
		t.Errorf("got key %q, again %v, %d sent again, want k, true, 1", o.key, again, c.resent)
	}
	if next, again := c.next(2); again || string(next.body) == string(first.body) {
		t.Errorf("got %s again, want another order", next.body)
	}
}

func TestDice(t *testing.T) {
	a, b := newDice(7), newDice(7)
	for range 100 {
		if x, y := a.below(6), b.below(6); x != y || x < 0 || x > 5 {
			t.Fatalf("the same seed rolls %d and %d, want the same from 0 to 5", x, y)
		}
		if d := a.upTo(time.Second); d < 0 || d > time.Second {
			t.Errorf("upTo a second: got %s", d)
		}
		b.upTo(time.Second)
	}
	if !a.one(1) {
		t.Error("once in one time: got false")
	}
}

func TestPauseIsCutShort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if !pause(ctx, 0) {
		t.Error("no time at all: got false")
	}
	cancel()
	if pause(ctx, time.Hour) {
		t.Error("cut short: got true")
	}
}
