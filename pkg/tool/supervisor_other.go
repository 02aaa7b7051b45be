//go:build unix && !linux

package tool

import "syscall"

// adoptOrphans can do nothing: only the command's group is supervised here.
func adoptOrphans() {}

func commandAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func descendants(int) []int { return nil }
