package tool

import (
	"io"
	"os"
	"sync"
	"time"
)

// wire is a pipe to a process about to start: one end for each side.
type wire struct{ ours, theirs *os.File }

func pipeFrom() (wire, error) {
	r, w, err := os.Pipe()
	return wire{ours: r, theirs: w}, err
}

func pipeTo() (wire, error) {
	r, w, err := os.Pipe()
	return wire{ours: w, theirs: r}, err
}

// pipes are all pipes between a process and this one.
type pipes struct {
	wires   []wire
	err     error      // the first of making them
	copies  []func()   // each moves what goes through one of them
	moved   []*os.File // our ends of those
	copying sync.WaitGroup
}

// add makes a pipe. After a failure the files are nil.
func (p *pipes) add(open func() (wire, error)) (ours, theirs *os.File) {
	if p.err != nil {
		return nil, nil
	}
	w, err := open()
	if err != nil {
		p.err = err
		return nil, nil
	}
	p.wires = append(p.wires, w)
	return w.ours, w.theirs
}

// take makes a pipe whose other side writes to w.
func (p *pipes) take(w io.Writer) (theirs *os.File) {
	ours, theirs := p.add(pipeFrom)
	p.move(ours, func() { _, _ = io.Copy(w, ours) }) // ends at the last writer's end or at the deadline
	return theirs
}

// feed makes a pipe whose other side reads what r has, and then the end of it. A file
// is handed over as it is, so that a process may end without reading it to its end.
func (p *pipes) feed(r io.Reader) (theirs *os.File) {
	if f, ok := r.(*os.File); ok {
		return f
	}
	ours, theirs := p.add(pipeTo)
	p.move(ours, func() {
		_, _ = io.Copy(ours, r) // the other side need not read to the end
		ours.Close()
	})
	return theirs
}

func (p *pipes) move(ours *os.File, copying func()) {
	p.moved = append(p.moved, ours)
	p.copies = append(p.copies, copying)
}

// started gives the other ends up, which the process has now, and sets the data
// in motion.
func (p *pipes) started() {
	for _, w := range p.wires {
		w.theirs.Close()
	}
	for _, c := range p.copies {
		p.copying.Go(c)
	}
}

// drain waits for what is still on its way, for a moment.
func (p *pipes) drain() {
	for _, f := range p.moved {
		_ = f.SetDeadline(time.Now().Add(drainTime))
	}
	p.copying.Wait()
}

// close closes what is still open.
func (p *pipes) close() {
	for _, w := range p.wires {
		w.ours.Close()
		w.theirs.Close()
	}
}
