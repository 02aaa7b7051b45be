//go:build unix

package v3import

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFIFO must not block.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	found := Collect([]string{filepath.Dir(path)}, true)
	if len(found.Sources) != 0 || len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "FIFOs, sockets and devices: 1") {
		t.Errorf("%+v", found)
	}
	_, err := Read(t.Context(), path, Options{})
	var f *Failure
	if !errors.As(err, &f) || f.Message != "not a regular file" || f.Line != 1 {
		t.Errorf("%v", err)
	}
}
