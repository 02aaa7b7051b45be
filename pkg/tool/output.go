package tool

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// What one result shows of a text at most.
const (
	maxLines = 2000
	maxBytes = 50 << 10
)

// Output takes the output of a command: the end of it as text, and once that is
// not all, the whole of it in a file. One goroutine writes and finishes; others
// may look at the text meanwhile.
type Output struct {
	Tool    string // in the file's name
	TempDir string // takes the file; "" is the system's

	mu      sync.Mutex // guards these:
	text    decoder
	tail    []byte // text, at least its last maxBytes+1 bytes
	bytes   int64  // of text, in all
	lines   int64  // line ends, in all
	version int    // changes with every change of the text

	raw     int64  // bytes written
	head    []byte // those bytes, as long as there is no file
	spool   *spool // the file; nil when there is none
	saveErr error
}

// view is what a result shows of an output.
type view struct {
	text     string
	lines    int   // in text
	total    int64 // lines in all
	cut      bool  // text is not all of it
	partLine bool  // text starts within a line
}

// Write takes the next bytes. It never fails: a command must not stop because
// its output cannot be kept.
func (o *Output) Write(p []byte) (int, error) {
	o.add(func(tail []byte) []byte { return o.text.append(tail, p) })
	o.save(p)
	return len(p), nil
}

// Finish ends the text and closes the file.
func (o *Output) Finish() {
	o.add(o.text.flush)
	o.save(nil) // what was flushed may be the byte too many
	if o.spool == nil {
		return
	}
	if err := o.spool.finish(); o.saveErr == nil {
		o.saveErr = err
	}
	if o.spool.path == "" {
		o.spool = nil
	}
}

// add appends to the text, and drops what no view will show again.
func (o *Output) add(appendTo func(tail []byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.tail)
	o.tail = appendTo(o.tail)
	added := o.tail[before:]
	if len(added) == 0 {
		return
	}
	o.version++
	o.bytes += int64(len(added))
	o.lines += int64(bytes.Count(added, []byte("\n")))
	if len(o.tail) > 4*maxBytes {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-maxBytes-utf8.UTFMax:]...)
	}
}

// save keeps the raw bytes, in memory until the text is too long for a result.
func (o *Output) save(p []byte) {
	o.raw += int64(len(p))
	if o.saveErr != nil {
		return
	}
	if o.spool == nil {
		o.head = append(o.head, p...)
		if !o.tooLong() {
			return
		}
		if o.spool, o.saveErr = newSpool(o.TempDir, o.Tool); o.saveErr != nil {
			o.head = nil
			return
		}
		p, o.head = o.head, nil
	}
	o.saveErr = o.spool.write(p)
}

// tooLong tells whether a view can no longer show the whole text.
func (o *Output) tooLong() bool {
	lines := o.lines
	if n := len(o.tail); n > 0 && o.tail[n-1] != '\n' {
		lines++
	}
	return o.bytes > maxBytes || lines > maxLines
}

// changed returns a number that stays the same as long as the text does.
func (o *Output) changed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.version
}

// last returns the end of the text: at most maxLines lines and maxBytes bytes,
// from the start of a line unless that would leave out too much.
func (o *Output) last() view {
	o.mu.Lock()
	defer o.mu.Unlock()
	v := view{total: o.lines}
	t := o.tail
	if n := len(t); n > 0 && t[n-1] != '\n' {
		v.total++
	}
	from := max(lastBytes(t), lastLines(t))
	v.text = string(t[from:])
	v.lines = countLines(v.text)
	v.cut = int64(len(v.text)) < o.bytes
	v.partLine = from > 0 && t[from-1] != '\n'
	return v
}

// lastBytes returns where the last maxBytes of t start: at a line if one starts
// soon, else at a character.
func lastBytes(t []byte) int {
	from := len(t) - maxBytes
	if from <= 0 {
		return 0
	}
	if i := bytes.IndexByte(t[from-1:from+maxBytes/2], '\n'); i >= 0 {
		return from + i
	}
	for from < len(t) && !utf8.RuneStart(t[from]) {
		from++
	}
	return from
}

// lastLines returns where the last maxLines of t start.
func lastLines(t []byte) int {
	end := len(t)
	if end > 0 && t[end-1] == '\n' {
		end--
	}
	for range maxLines {
		if end = bytes.LastIndexByte(t[:end], '\n'); end < 0 {
			return 0
		}
	}
	return end + 1
}
