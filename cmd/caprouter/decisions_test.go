package main

import (
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestFormatReading(t *testing.T) {
	clf := contract.Classification{Intent: "track_order", Domains: []string{"orders"}}
	tied := clf
	tied.Tied = true
	for want, d := range map[string]contract.Decision{
		"track_order · orders":                        {Classification: clf},
		"track_order · orders → orders_agent, second": {Classification: clf, Chosen: []string{"orders_agent", "second"}},
		"track_order · orders (tied) → orders_agent":  {Classification: tied, Chosen: []string{"orders_agent"}},
	} {
		if got := formatReading(&d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
