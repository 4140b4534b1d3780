//go:build !unix

package lab

import "os/exec"

// asGroup does nothing: only the program itself is killed.
func asGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
