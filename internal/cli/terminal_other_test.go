//go:build !linux

package cli

import (
	"io"
	"os"
	"testing"
)

// onTerminal gives the process, which has not started, a pipe to print on: here
// nobody makes terminals.
func (p *process) onTerminal(t *testing.T) io.Reader {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	p.Stdout, p.given = w, w
	return r
}
