package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// builtBinary is the program as make build leaves it.
func builtBinary(b *testing.B) string {
	b.Helper()
	binary, err := filepath.Abs("../../bin/drover")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		b.Skipf("%v: run make build first", err)
	}
	return binary
}

// BenchmarkProcess measures whole processes of the real binary, as `make build`
// leaves it: how long a command takes, and how much of that is CPU.
func BenchmarkProcess(b *testing.B) {
	binary, repo := builtBinary(b), b.TempDir()
	run := func(b *testing.B, args ...string) (out string, cpu time.Duration) {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "DROVER_REPO="+repo, "HOME="+repo)
		text, err := cmd.Output()
		if err != nil {
			b.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(text)), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	session, _ := run(b, "create")
	run(b, "prompt", session, "hello")
	for _, args := range [][]string{{"version"}, {"inspect", session}, {"inspect", session, "--json"}, {"list", "--json"}} {
		b.Run(strings.ReplaceAll(strings.Join(args, " "), session, "S"), func(b *testing.B) {
			var cpu time.Duration
			for b.Loop() {
				_, used := run(b, args...)
				cpu += used
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
