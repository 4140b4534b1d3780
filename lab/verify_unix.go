//go:build unix

package lab

import (
	"os/exec"
	"syscall"
)

// asGroup makes a program that will be started the leader of a new process group, which can be killed as a whole.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills the processes that a finished program has left running.
func endGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
