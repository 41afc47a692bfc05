//go:build !unix

package subprocess

import (
	"context"
	"errors"
	"syscall"
)

func checkSystem() error {
	return errors.New("MCP servers that are processes are supported on Unix only: use a server with a url")
}

func newGroup() *syscall.SysProcAttr { return nil }

func killGroup(int) {}

// Supervise is supported on Unix only.
func Supervise(context.Context, []string) int { return exitUsage }
