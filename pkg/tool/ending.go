package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-run/drover/pkg/message"
)

// Ending is how a command ended.
type Ending struct {
	Report
	Err      error // it did not run, or its end is not known
	TimedOut bool
	Aborted  bool
	Limit    time.Duration // that it ran into; 0 without one
	Stderr   string        // the end of what it wrote there, when that is not part of the output
}

var errTimeout = errors.New("time limit")

// Run runs the command until it and all it started have ended, which is what
// happens to them at the limit (0 is none) and within a second of the end of ctx,
// whoever still holds the output.
func (c *Command) Run(ctx context.Context, limit time.Duration) Ending {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	r, err := c.run(ctx)
	e := Ending{Report: r, Err: err, Limit: limit}
	if r.Stopped && ctx.Err() != nil {
		e.TimedOut = errors.Is(context.Cause(ctx), errTimeout)
		e.Aborted = !e.TimedOut
	}
	return e
}

// Environment is this process's own for a command that runs in dir, without the
// variables that strip names, which a command must not see (D44).
func Environment(dir string, strip func(name string) bool) []string {
	env := []string{"PWD=" + dir}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if name == "PWD" || name == "OLDPWD" || strip != nil && strip(name) {
			continue
		}
		env = append(env, v)
	}
	return env
}

// Failed tells an end that makes the result an error.
func (e Ending) Failed() bool {
	return e.Err != nil || e.TimedOut || e.Aborted || e.Stopped || e.Signal != 0 || e.Code != 0
}

// Result puts the end of the output, of a failed command what it said on the way,
// and how it ended together. The output is finished.
func (e Ending) Result(o *Output) message.ToolResult {
	v := o.last()
	notes := e.notes()
	if v.cut {
		notes = append([]string{cutNote(v, o)}, notes...)
	}
	text := v.text
	if e.Failed() {
		text = withLine(text, e.Stderr)
	} else if text == "" {
		text = "(no output)"
	}
	if len(notes) > 0 {
		text = withLine(text, "["+strings.Join(notes, " ")+"]")
	}
	r := textResult(text)
	r.IsError = e.Failed()
	r.Details = e.details(v, o).raw()
	return r
}

// withLine begins a line with more.
func withLine(text, more string) string {
	if text != "" && more != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + more
}

func (e Ending) notes() []string {
	var notes []string
	switch {
	case e.Err != nil:
		notes = append(notes, sentence(e.Err.Error()))
	case e.TimedOut:
		notes = append(notes, fmt.Sprintf("Ended after %s seconds, the time limit.", strconv.FormatFloat(e.Limit.Seconds(), 'g', 6, 64)))
	case e.Aborted:
		notes = append(notes, "Ended because the call was aborted.")
	case e.Stopped:
		notes = append(notes, "Ended because the supervisor was told to stop.")
	case e.Signal != 0:
		notes = append(notes, fmt.Sprintf("Ended by signal %d (%s).", e.Signal, syscall.Signal(e.Signal)))
	case e.Code != 0:
		notes = append(notes, fmt.Sprintf("Exit code %d.", e.Code))
	}
	if e.Left {
		notes = append(notes, "Processes that the command left running were ended.")
	}
	if e.Stuck {
		notes = append(notes, "Some of its processes could not be ended.")
	}
	return notes
}

func cutNote(v view, o *Output) string {
	what := fmt.Sprintf("The last %d of %d lines", v.lines, v.total)
	if v.partLine {
		what = fmt.Sprintf("The last %d bytes, the first line incomplete", len(v.text))
	}
	switch {
	case o.spool == nil:
		return fmt.Sprintf("%s; the full output could not be kept: %v.", what, o.saveErr)
	case o.spool.saved < o.raw && o.saveErr != nil:
		return fmt.Sprintf("%s; the first %d bytes are in %s, the rest could not be kept: %v.", what, o.spool.saved, o.spool.path, o.saveErr)
	case o.spool.saved < o.raw:
		return fmt.Sprintf("%s; the first %d of %d bytes are in %s.", what, o.spool.saved, o.raw, o.spool.path)
	}
	return fmt.Sprintf("%s; the full output is in %s.", what, o.spool.path)
}

func (e Ending) details(v view, o *Output) object {
	var d object
	if e.Ended && e.Signal == 0 {
		d = d.integer("exitCode", int64(e.Code))
	} else {
		d = d.null("exitCode")
	}
	if e.Signal != 0 {
		d = d.integer("signal", int64(e.Signal))
	}
	d = d.boolean("cancelled", e.Aborted).boolean("timedOut", e.TimedOut).boolean("truncated", v.cut)
	if v.cut {
		d = d.integer("totalLines", v.total).integer("totalBytes", o.raw)
	}
	if o.spool != nil {
		d = d.text("fullOutputPath", o.spool.path)
	}
	if e.Stderr != "" && !e.Failed() { // then the text has it
		d = d.text("stderr", e.Stderr)
	}
	return d
}

// sentence makes an error's text one.
func sentence(s string) string {
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = string(s[0]-'a'+'A') + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}
