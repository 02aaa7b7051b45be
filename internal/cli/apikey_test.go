package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A program that is to tell a key dies with the process that asked it, kill -9
// included (D45).
func TestKeyCommandDies(t *testing.T) {
	repo := t.TempDir()
	pipe, config := filepath.Join(repo, "pipe"), filepath.Join(repo, "config.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("exec 9>%s; (trap '' TERM INT HUP; sleep 600) & echo begun >&9; sleep 600", pipe)
	text := fmt.Sprintf("providers:\n  p: {base_url: \"http://127.0.0.1:1/\", api_key_command: [sh, -c, %q]}\n", script)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// Opening waits for the program.
	begun := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(pipe)
		begun <- f
	}()
	p := drover(t, repo, "prompt", "--new", "hello", "--model", "p/m", "--config", config)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() { ended <- p.code(t) }()
	var held *os.File
	select {
	case held = <-begun:
		defer held.Close()
	case code := <-ended:
		t.Fatalf("exit code %d before the program ran: %s", code, p.stderr.String())
	}
	if _, err := io.ReadFull(held, make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, held); err != nil {
		t.Errorf("the program is left: %v", err)
	}
}
