package fsx

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Process identifies one process beyond the re-use of its number (D22). Fields
// that the system does not tell are zero.
type Process struct {
	Host   string
	BootID string // changes with every start of the machine
	PIDNS  string // the namespace that PID counts in
	PID    int
	Start  int64 // clock ticks between boot and the process's start
}

// Self identifies the calling process.
func Self() Process {
	p := Process{PID: os.Getpid()}
	p.Host, _ = os.Hostname()
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.BootID = strings.TrimSpace(string(b))
	}
	p.PIDNS, _ = os.Readlink("/proc/self/ns/pid")
	if st, err := readStat(p.PID); err == nil {
		p.Start = st.start
	}
	return p
}

// Gone reports that the process certainly has ended: its number is free or
// belongs to a process that started at another time, or it is dead and waits to
// be collected. It can be judged only within the caller's own boot and pid
// namespace; anywhere else, and where nothing is known, Gone is false.
func (p Process) Gone() bool {
	self := Self()
	if p.PID <= 0 || p.BootID == "" || p.PIDNS == "" || p.BootID != self.BootID || p.PIDNS != self.PIDNS {
		return false
	}
	// Asking the kernel first: /proc may hide the processes of other users.
	if err := syscall.Kill(p.PID, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	st, err := readStat(p.PID)
	if err != nil {
		return false
	}
	return st.dead || (p.Start != 0 && st.start != p.Start)
}

type procStat struct {
	dead  bool
	start int64
}

// readStat reads state and start time from /proc. The command name in front of
// them may hold anything, closing parentheses included.
func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(b)
}

func parseStat(b []byte) (procStat, error) {
	const afterName, startField = 3, 22 // fields count from 1; the name is the second
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) <= startField-afterName {
		return procStat{}, fmt.Errorf("process status has %d fields", len(fields))
	}
	start, err := strconv.ParseInt(string(fields[startField-afterName]), 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("process start time: %w", err)
	}
	state := fields[0][0]
	return procStat{dead: state == 'Z' || state == 'X' || state == 'x', start: start}, nil
}
