//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond the limit on the size of files (ulimit -f) an
// error, which the store handles as any other, instead of the end of the process.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
