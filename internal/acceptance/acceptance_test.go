package acceptance_test

import (
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/acceptance"
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
