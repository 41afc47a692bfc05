//go:build !linux

package process

import "os/exec"

// killWithParent does nothing, because only Linux has a signal for the death of the
// parent. Roles end when their standard input is closed; a router survives a driver
// that was killed.
func killWithParent(*exec.Cmd) {}
