package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// format is the form of a command's results.
type format string

const (
	formatText   format = "text"
	formatJSON   format = "json"
	formatNDJSON format = "ndjson"
)

func parseFormat(s string) (format, error) {
	switch f := format(s); f {
	case formatText, formatJSON, formatNDJSON:
		return f, nil
	}
	return "", fmt.Errorf("want text, json or ndjson")
}

// printer renders results to stdout and talk to stderr, as the output flags
// ask. Its methods are safe for concurrent use.
type printer struct {
	*streams
	format   format
	chosenBy string // what the user gave for the format
	quiet    bool
	verbose  bool
	color    bool
	progress bool
	now      func() int64

	mu sync.Mutex
}

// result ends a command: one document in json and ndjson, text otherwise. The
// document says how the process will exit; err is returned so that it does.
// A nil text prints nothing.
func (p *printer) result(err error, doc func(*object), text func(io.Writer) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var writeErr error
	switch {
	case p.format != formatText:
		writeErr = p.document(err, doc)
	case text != nil:
		writeErr = text(p.out)
	}
	if flushErr := p.out.Flush(); writeErr == nil {
		writeErr = flushErr
	}
	if err != nil {
		return err
	}
	return writeErr
}

func (p *printer) document(err error, doc func(*object)) error {
	o := newObject()
	o.w = p.out
	if p.format == formatNDJSON {
		o.str("type", "result")
	}
	doc(o)
	o.exit(codeOf(err))
	return p.line(o)
}

func (p *printer) line(o *object) error {
	b, err := o.bytes()
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	_, err = p.out.Write(append(b, '\n'))
	return err
}

// item prints one thing of several as soon as it is done, in ndjson only.
func (p *printer) item(fill func(*object)) error {
	return p.stream(func(o *object) {
		o.str("type", "item")
		fill(o)
	})
}

// stream prints one line at once, in ndjson only.
func (p *printer) stream(fill func(*object)) error {
	if p.format != formatNDJSON {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := newObject()
	fill(o)
	if err := p.line(o); err != nil {
		return err
	}
	return p.out.Flush()
}

// write puts text on stdout at once.
func (p *printer) write(s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.out, s); err != nil {
		return err
	}
	return p.out.Flush()
}

// note tells a person something on stderr. --quiet silences it, and so do the
// formats for scripts, whose stderr holds errors as JSON.
func (p *printer) note(format string, args ...any) {
	if !p.quiet && p.format == formatText {
		p.say(fmt.Sprintf(format, args...))
	}
}

// alert is a note that --quiet does not silence: something has to be done.
func (p *printer) alert(format string, args ...any) {
	if p.format == formatText {
		p.say(fmt.Sprintf(format, args...))
	}
}

// warn tells of what the command could not do beside its task, which scripts have to
// know, too; --quiet silences it.
func (p *printer) warn(code, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if p.format == formatText {
		p.note("warning: %s", escapeLine(message))
		return
	}
	if p.quiet {
		return
	}
	o := newObject()
	o.str("type", "warning")
	o.str("code", code)
	o.str("message", message)
	if line, err := o.bytes(); err == nil {
		p.say(string(line))
	}
}

// announce tells the id of a session that a command has made, at once and in
// every format: without it the session would be hard to find again.
func (p *printer) announce(id string) {
	if !p.quiet {
		p.say("session: " + escapeLine(id))
	}
}

// debug is a note that only --verbose shows.
func (p *printer) debug(format string, args ...any) {
	if p.verbose {
		p.note(format, args...)
	}
}

func (p *printer) say(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Nobody is left to tell when stderr cannot be written.
	_, _ = io.WriteString(p.err, s+"\n")
}

// failure prints an error in the form that the output format promises.
func (p *printer) failure(f *failure) {
	if p.quiet && f.code == exitLater && !f.stuck {
		return // no error: it is to be run again, as the exit code says
	}
	if p.format == formatText {
		text := "drover: " + escapeText(f.placed())
		if f.hint != "" {
			text += "\nhint: " + escapeText(f.hint)
		}
		p.say(p.paint(red, text, p.errTTY))
		return
	}
	o := newObject()
	o.str("type", "error")
	o.str("code", f.tag)
	o.str("message", f.message)
	o.int("exit", int64(f.code))
	if f.hint != "" {
		o.str("hint", f.hint)
	}
	if f.details != nil {
		o.object("details", f.details)
	}
	b, _ := o.bytes()
	p.say(string(b))
}

type ink string

const (
	bold ink = "\x1b[1m"
	dim  ink = "\x1b[2m"
	red  ink = "\x1b[31m"
	cyan ink = "\x1b[36m"
)

// paint colours text for a terminal when colours are wanted.
func (p *printer) paint(c ink, s string, tty bool) string {
	if !p.color || !tty || s == "" {
		return s
	}
	return string(c) + s + "\x1b[0m"
}

// when shows a time: how long ago on a terminal, the instant elsewhere.
func (p *printer) when(ms int64) string {
	if p.outTTY {
		return ago(ms, p.now())
	}
	return instant(ms)
}

// shortIDs returns how ids are shown: in full in a pipe, on a terminal by the
// last eight characters, or as many more as tell all of them apart.
func (p *printer) shortIDs(ids []string) func(string) string {
	if !p.outTTY {
		return escapeLine
	}
	n := 8
	for ; n < 36; n++ {
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			seen[ending(id, n)] = true
		}
		if len(seen) == distinct(ids) {
			break
		}
	}
	return func(id string) string { return escapeLine(ending(id, n)) }
}

func ending(id string, n int) string { return id[max(0, len(id)-n):] }

func distinct(ids []string) int {
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		seen[id] = true
	}
	return len(seen)
}

// indent puts a prefix before every line of text.
func indent(s, prefix string) string {
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix)
}
