package history_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/inflight"
)

func TestService_ReturnsVisibleRequests(t *testing.T) {
	f := newFixture(t)
	id := f.record(t, alice, "payer", "second")
	for _, tt := range []struct {
		name   string
		caller *contract.Caller
		want   contract.Code
	}{
		{"owner", alice, ""},
		{"colleague with every agent", bob, ""},
		{"colleague without an agent", limited, contract.CodeNotFound},
		{"another tenant", foreign, contract.CodeNotFound},
	} {
		resp, err := f.Request(t.Context(), id, tt.caller)
		if errorCode(err) != tt.want || err == nil && resp.Data.Answer != "paid" {
			t.Errorf("%s: got %+v, %v, want code %q", tt.name, resp, err, tt.want)
		}
		if tt.caller == bob && resp.Decision.Hidden != nil {
			t.Errorf("%s: got hidden agents %+v, want none", tt.name, resp.Decision.Hidden)
		}
	}
	for _, id := range []string{"", "nonsense", strings.ToUpper(id), uuid.NewString(), newID(t)} {
		if _, err := f.Request(t.Context(), id, alice); errorCode(err) != contract.CodeNotFound {
			t.Errorf("%q: got %v, want not_found", id, err)
		}
	}
	f.log.err = errors.New("broken")
	if _, err := f.Request(t.Context(), id, alice); errorCode(err) != contract.CodeOverloaded {
		t.Errorf("got %v from a broken log, want overloaded", err)
	}
}

// An unknown id costs one search, and a short one if the record of an asynchronous
// request of that age would still be stored. A young id is looked up twice.
func TestService_BoundsSearchForUnknownRequest(t *testing.T) {
	with, without := newFixture(t, withStore(t)), newFixture(t)
	for _, tt := range []struct {
		name            string
		fixture         *fixture
		age             time.Duration
		finds, searches int
	}{
		{"minutes old", with, 10 * time.Minute, 0, 1},
		{"one day old", with, 24 * time.Hour, 0, 1},
		{"older than records are stored", with, 49 * time.Hour, 1, 0},
		{"without asynchronous requests", without, time.Hour, 1, 0},
		{"new", with, 0, 0, 2},
	} {
		tt.fixture.log = fakeLog{}
		if _, err := tt.fixture.Request(t.Context(), idWithAge(t, tt.age), alice); errorCode(err) != contract.CodeNotFound {
			t.Errorf("%s: got %v, want not_found", tt.name, err)
		}
		if l := &tt.fixture.log; l.finds != tt.finds || l.searches != tt.searches {
			t.Errorf("%s: got %d searches of the whole log and %d within a window, want %d and %d", tt.name, l.finds, l.searches, tt.finds, tt.searches)
		}
	}
}

// The request starts after the table of requests in flight was read.
func TestService_FindsRequestThatStartsDuringLookup(t *testing.T) {
	f := newFixture(t)
	id := newID(t)
	f.log.onFind = func() {
		f.log.onFind = nil
		f.inflight.Add(inflight.NewRequest(id, "", alice, func(error) {}))
	}
	if resp, err := f.Request(t.Context(), id, alice); err != nil || resp.Status != contract.StatusRunning {
		t.Errorf("got %+v, %v, want the running request", resp, err)
	}
}
