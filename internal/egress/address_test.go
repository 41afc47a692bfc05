package egress_test

import (
	"testing"

	"github.com/caprouter/caprouter/internal/egress"
)

func TestIsLoopback(t *testing.T) {
	tests := map[string]bool{
		"127.0.0.1": true, "127.8.9.1": true, "::1": true, "::ffff:127.0.0.1": true, "localhost": true, "LocalHost": true,
		"": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "128.0.0.1": false, "::ffff:10.0.0.1": false,
		// Spellings that other parsers accept as loopback, and names that DNS
		// resolves.
		"127.1": false, "2130706433": false, "0x7f000001": false, "127.0.0.1.": false, "127.0.0.1.example": false,
		"localhost.": false, "localhost.example": false, "[::1]": false, "127.0.0.1:80": false,
	}
	for host, want := range tests {
		if got := egress.IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}
