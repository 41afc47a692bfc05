//go:build !unix

package rest

import (
	"testing"
	"time"
)

// cpuTime requires getrusage.
func cpuTime(b *testing.B) time.Duration {
	b.Skip("the CPU time of a process can only be measured on Unix")
	return 0
}
