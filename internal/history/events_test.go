package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/events"
	"github.com/caprouter/caprouter/internal/history"
	"github.com/caprouter/caprouter/internal/requests"
)

// goneEvents loses its events once, then returns the final event, which is too long to
// contain the response.
type goneEvents struct {
	history.NoEvents
	followed uint64
}

func (e *goneEvents) Read(context.Context, string, uint64, func(uint64, *contract.Event) error) error {
	return events.ErrGone
}

func (e *goneEvents) Position(context.Context) (uint64, error) { return 7, nil }

func (e *goneEvents) Follow(_ context.Context, id string, after uint64, fn func(uint64, *contract.Event) error) error {
	e.followed = after
	return fn(after+1, &contract.Event{Type: contract.EventFinal, RequestID: id})
}

func TestService_EmitsStateInsteadOfLostEvents(t *testing.T) {
	stream := &goneEvents{}
	f := newFixture(t, withStore(t), func(f *fixture) { f.events = stream })
	rec := &requests.Record{ID: newID(t), Caller: *alice, State: requests.StateAccepted, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour)}
	rec.Request.RequestID = rec.ID
	if err := f.requests.Create(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	ended := f.record(t, alice)
	type emitted struct {
		Seq         uint64
		Type        contract.EventType
		HasResponse bool
	}
	for _, tt := range []struct {
		name, id string
		want     []emitted
	}{
		{"asynchronous", rec.ID, []emitted{{0, contract.EventState, true}, {8, contract.EventFinal, true}}},
		{"synchronous", ended, []emitted{{0, contract.EventState, true}, {0, contract.EventFinal, true}}},
	} {
		var got []emitted
		err := f.Events(t.Context(), tt.id, alice, 0, func(seq uint64, ev *contract.Event) error {
			got = append(got, emitted{seq, ev.Type, ev.Response != nil})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if stream.followed != 7 {
		t.Errorf("got events followed after %d, want 7", stream.followed)
	}
	if err := f.Events(t.Context(), ended, foreign, 0, nil); errorCode(err) != contract.CodeNotFound {
		t.Errorf("another tenant: got %v, want not_found", err)
	}
}
