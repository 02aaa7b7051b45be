package answer

import "strings"

const (
	firstPage = 1 << 10
	lastPage  = 1 << 20
)

// text grows at its end without moving what it has (D41).
type text struct {
	full [][]byte
	last []byte
	held int // bytes in full
}

func (t *text) add(s string) {
	for len(s) > 0 {
		if len(t.last) == cap(t.last) {
			t.page()
		}
		n := min(len(s), cap(t.last)-len(t.last))
		t.last = append(t.last, s[:n]...)
		s = s[n:]
	}
}

func (t *text) page() {
	size := min(max(2*cap(t.last), firstPage), lastPage)
	if len(t.last) > 0 {
		t.full = append(t.full, t.last)
		t.held += len(t.last)
	}
	t.last = make([]byte, 0, size)
}

func (t *text) size() int { return t.held + len(t.last) }

// take returns the text and gives up its memory.
func (t *text) take() string {
	var b strings.Builder
	b.Grow(t.size())
	for _, page := range t.full {
		b.Write(page)
	}
	b.Write(t.last)
	*t = text{}
	return b.String()
}
