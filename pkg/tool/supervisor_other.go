//go:build unix && !linux

package tool

import "syscall"

// adoptOrphans can do nothing: only the command's group is supervised here.
func adoptOrphans() {}

func commandAttributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group}
}

func descendants(int) []int { return nil }
