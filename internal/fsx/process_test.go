package fsx

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func needProc(t *testing.T) Process {
	t.Helper()
	self := Self()
	if self.BootID == "" || self.PIDNS == "" {
		t.Skip("this system does not tell boot and namespace")
	}
	return self
}

func TestGone(t *testing.T) {
	self := needProc(t)
	ended := exec.Command(os.Args[0], "-test.run=^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	change := func(f func(*Process)) Process {
		p := self
		f(&p)
		return p
	}
	tests := []struct {
		name string
		p    Process
		want bool
	}{
		{"myself", self, false},
		{"myself, start unknown", change(func(p *Process) { p.Start = 0 }), false},
		{"my number, another start", change(func(p *Process) { p.Start++ }), true},
		{"ended", change(func(p *Process) { p.PID, p.Start = ended.Process.Pid, 0 }), true},
		{"init, another start", change(func(p *Process) { p.PID, p.Start = 1, 1<<60 }), true},
		{"ended, another boot", change(func(p *Process) { p.PID, p.BootID = ended.Process.Pid, "b" }), false},
		{"ended, another namespace", change(func(p *Process) { p.PID, p.PIDNS = ended.Process.Pid, "pid:[1]" }), false},
		{"no pid", change(func(p *Process) { p.PID = 0 }), false},
		{"a group", change(func(p *Process) { p.PID = -1 }), false},
		{"nothing known", Process{PID: ended.Process.Pid}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Gone(); got != tt.want {
				t.Errorf("gone = %v", got)
			}
		})
	}
}

func TestZombieIsGone(t *testing.T) {
	p := needProc(t)
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.PID, p.Start = cmd.Process.Pid, 0
	// The pipe ends when the child does; nobody has waited for it then.
	for buf := make([]byte, 512); err == nil; {
		_, err = out.Read(buf)
	}
	for !p.Gone() {
		if st, err := readStat(p.PID); err != nil {
			t.Fatalf("the child vanished: %+v, %v", st, err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 987654 1 1"
	tests := []struct {
		name, in string
		want     procStat
		ok       bool
	}{
		{"plain", "42 (drover)" + rest, procStat{start: 987654}, true},
		{"a name with parentheses", "42 (a) Z 1 (b)" + rest, procStat{start: 987654}, true},
		{"zombie", "42 (x) Z" + rest[2:], procStat{dead: true, start: 987654}, true},
		{"dead", "42 (x) X" + rest[2:], procStat{dead: true, start: 987654}, true},
		{"short", "42 (x) S 1 2", procStat{}, false},
		{"no number", "42 (x) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 later", procStat{}, false},
		{"empty", "", procStat{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat([]byte(tt.in))
			if (err == nil) != tt.ok {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(procStat{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
