package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/strictjson"
)

func TestTraffic_CountsAnswersByOperation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	bodies, tokens := map[string]bool{}, map[string]bool{}
	addr := handleConnection(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req contract.Request
		if r.URL.Path == routePath {
			if err := strictjson.Unmarshal(body, &req); err != nil {
				t.Errorf("invalid body %.80s: %v", body, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		bodies[string(body)], tokens[r.Header.Get("Authorization")] = true, true
		switch {
		case req.SessionID != "":
			w.WriteHeader(http.StatusTooManyRequests)
		case len(bodies) > 40:
			cancel()
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	f := newTraffic(newTenant("a", addr, 3, newTokenSecret()), "route,sessions", 0, &failureLog{})
	f.run(ctx, 2)
	if len(tokens) != 3 || len(f.counts) != 2 || f.counts["route"].rejected > 0 || f.counts["sessions"].accepted > 0 || f.counts["route"].accepted == 0 {
		t.Errorf("got %d tokens and counts %+v, want 3 tokens, routes accepted and sessions rejected", len(tokens), f.counts)
	}
}

func TestStoredRecord_FindsRequestKeyAndTicket(t *testing.T) {
	for _, tt := range []struct{ name, replayed, wantErr string }{
		{"kept", "r", ""},
		{"executed a second time", "other", "with request other, not r"},
	} {
		var paths []string
		addr := handleConnection(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.Method+" "+r.URL.Path+" "+r.Header.Get("Idempotency-Key"))
			fmt.Fprintf(w, `{"request_id":%q,"status":"completed","decision":null,"tasks":[],"omitted":[],"data":{}}`, tt.replayed)
		}))
		rec := storedRecord{key: "k", body: "{}", requestID: "r", ticketID: "t"}
		err := rec.find(t.Context(), newTenant("b", addr, 1, newTokenSecret()))
		if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.wantErr)
		}
		if diff := cmp.Diff([]string{"GET /api/v1/requests/r ", "GET /api/v1/tickets/t ", "POST " + routePath + " k"}, paths); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", tt.name, diff)
		}
	}
}
