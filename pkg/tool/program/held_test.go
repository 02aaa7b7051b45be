package program

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// openHeld makes the pipe "held" in dir. What it returns waits until no process
// has it open any more: its end of file tells so without looking at the clock.
func openHeld(t *testing.T, dir string) (wait func()) {
	t.Helper()
	path := filepath.Join(dir, "held")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Without O_NONBLOCK this would wait for the first writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func() {
		t.Helper()
		if err := f.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, f); err != nil {
			t.Errorf("processes are left: %v", err)
		}
	}
}
