package tool

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// adoptOrphans makes the orphans among all descendants children of this process
// instead of the first one's, so that none gets away. Where the kernel refuses,
// the group is all there is.
func adoptOrphans() {
	const prSetChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
}

// commandAttributes put a command into a group of its own, where it shall have
// one, and let it die should its supervisor be killed.
func commandAttributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGKILL}
}

// descendants lists the processes below another one.
func descendants(root int) []int {
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, ok := parentOf(name); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	all := children[root]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// parentOf reads the parent from a process's status, where it is the second
// field behind the command's name, which may hold anything.
func parentOf(pid string) (int, bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
