package process

import (
	"os/exec"
	"syscall"
)

// killWithParent kills the command when this process ends, even by SIGKILL.
func killWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
