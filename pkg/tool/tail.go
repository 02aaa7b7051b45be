package tool

import (
	"bytes"
	"strings"
	"sync"
)

// Tail keeps the end of what is written to it, such as what a program says on stderr:
// why it failed comes last. The zero value keeps nothing.
type Tail struct {
	Limit int // in bytes

	mu   sync.Mutex // guards these:
	kept []byte     // at most twice as much
	cut  bool       // kept is not all of it
}

// Write takes the next bytes and never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := len(p)
	if over := len(p) - t.Limit; over > 0 {
		p, t.kept, t.cut = p[over:], t.kept[:0], true
	}
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.Limit {
		t.trim()
	}
	return whole, nil
}

func (t *Tail) trim() {
	if over := len(t.kept) - t.Limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.cut = true
	}
}

// Text is that end. When it is not all, it begins with an ellipsis on a line of its
// own, and then at a line's start where one can be found.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	end, before := t.kept, ""
	if t.cut {
		before = "…\n"
		if i := bytes.IndexByte(end, '\n'); i >= 0 && i+1 < len(end) {
			end = end[i+1:]
		}
	}
	return before + strings.ToValidUTF8(string(end), "\uFFFD")
}

// Line is the text on one line.
func (t *Tail) Line() string { return strings.Join(strings.Fields(t.Text()), " ") }
