package acceptance_test

import (
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/acceptance"
	"github.com/caprouter/caprouter/internal/redact"
	"github.com/caprouter/caprouter/internal/requests"
)

func TestAcceptor_SelectsTimeout(t *testing.T) {
	a := acceptance.New(acceptance.Config{Timeout: 7 * time.Second})
	for _, tt := range []struct {
		name    string
		options contract.Options
		want    time.Duration
	}{
		{"default", contract.Options{}, 7 * time.Second},
		{"of the request", contract.Options{TimeoutMS: 1500}, 1500 * time.Millisecond},
		{"asynchronous", contract.Options{Mode: contract.ModeAsync}, contract.DefaultAsyncTimeoutMS * time.Millisecond},
		{"asynchronous, of the request", contract.Options{Mode: contract.ModeAsync, TimeoutMS: 1500}, 1500 * time.Millisecond},
	} {
		if got := a.RequestTimeout(&contract.Request{Options: tt.options}); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestAcceptor_RestoresPreviousRequest: a follow-up has the same meaning after a restart.
func TestAcceptor_RestoresPreviousRequest(t *testing.T) {
	mask, err := redact.New(redact.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rec := &requests.Record{
		Request: contract.Request{Content: contract.Content{Prompt: "and 412?"}},
		History: []contract.Turn{{Role: "user", Content: "clean room 411"}}, Previous: &contract.Classification{Intent: "clean_room"},
	}
	got := acceptance.New(acceptance.Config{Redactor: mask}).Restore(rec)
	if got.Previous == nil || got.Previous.Intent != "clean_room" || len(got.Turns) != 1 {
		t.Errorf("got previous %+v and turns %v, want those of the record", got.Previous, got.Turns)
	}
}
