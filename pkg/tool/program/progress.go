package program

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

const (
	// maxLine bounds a line of progress, in bytes.
	maxLine = 256 << 10
	// updateEvery is the shortest time between two reports: of what a program
	// writes faster than that, only the latest counts.
	updateEvery = 100 * time.Millisecond
	// maxNotes bounds what a result says about bad lines.
	maxNotes = 10
)

// progress takes what a program writes to descriptor 3: JSON lines, of which it
// reports the latest (D46). One goroutine writes, and finishes.
type progress struct {
	update func(partial message.ToolResult, checkpoint bool)
	news   chan struct{} // holds one when there is something to report
	ended  chan struct{}
	done   chan struct{}

	line  []byte // unfinished
	long  bool   // and too long
	count int    // of lines
	notes []string
	bad   int // lines

	mu    sync.Mutex // guards these, which are not reported yet:
	saved *message.ToolResult
	live  *message.ToolResult // newer than saved
}

func startProgress(update func(message.ToolResult, bool)) *progress {
	p := &progress{update: update, news: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{})}
	go p.report()
	return p
}

// report reports until the end: at once what comes after a silence, later what
// comes too soon.
func (p *progress) report() {
	defer close(p.done)
	for {
		select {
		case <-p.news:
			p.deliver()
		case <-p.ended:
			p.deliver()
			return
		}
		select {
		case <-time.After(updateEvery):
		case <-p.ended:
		}
	}
}

func (p *progress) deliver() {
	p.mu.Lock()
	saved, live := p.saved, p.live
	p.saved, p.live = nil, nil
	p.mu.Unlock()
	if saved != nil {
		p.update(*saved, true)
	}
	if live != nil {
		p.update(*live, false)
	}
}

// Write takes the next bytes. It never fails: a program must not stop because of
// its progress.
func (p *progress) Write(b []byte) (int, error) {
	n := len(b)
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			p.extend(b)
			return n, nil
		}
		p.extend(b[:i])
		p.endLine()
		b = b[i+1:]
	}
}

func (p *progress) extend(b []byte) {
	if p.long = p.long || len(p.line)+len(b) > maxLine; !p.long {
		p.line = append(p.line, b...)
	}
}

func (p *progress) endLine() {
	p.count++
	line, long := p.line, p.long
	p.line, p.long = nil, false
	if long {
		p.note(fmt.Errorf("it is longer than %d KiB", maxLine>>10))
		return
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	r, checkpoint, err := parseProgress(line)
	if err != nil {
		p.note(fmt.Errorf("%w%s", err, beginning(line)))
		return
	}
	p.mu.Lock()
	if checkpoint {
		p.saved, p.live = &r, nil
	} else {
		p.live = &r
	}
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default: // whoever is told will find this too
	}
}

func (p *progress) note(err error) {
	if p.bad++; p.bad <= maxNotes {
		p.notes = append(p.notes, fmt.Sprintf("line %d of descriptor 3: %v", p.count, err))
	}
}

// finish reports what is left.
func (p *progress) finish() {
	if len(p.line) > 0 || p.long {
		p.endLine()
	}
	close(p.ended)
	<-p.done
}

// annotate notes the bad lines in a result's details.
func (p *progress) annotate(r message.ToolResult) message.ToolResult {
	if p.bad == 0 {
		return r
	}
	notes := p.notes
	if more := p.bad - len(notes); more > 0 {
		notes = append(notes, fmt.Sprintf("%d more lines", more))
	}
	list := []byte("[")
	for i, n := range notes {
		if i > 0 {
			list = append(list, ',')
		}
		list = rawjson.AppendQuote(list, n)
	}
	details := r.Details
	if details == nil {
		details = []byte("{}")
	}
	if noted, err := rawjson.Set(details, "progressErrors", append(list, ']')); err == nil {
		r.Details = noted
	}
	return r
}
