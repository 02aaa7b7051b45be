package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/store"
)

// stepper drives one operation from breakpoint to breakpoint (spec §4.2).
type stepper struct {
	o    *driveOptions
	e    *engaged
	lane *engine.Lane
	id   string
	done chan struct{} // closed when the passes have ended

	outcome engine.DriveOutcome // once done is closed
	err     error
}

// driveStepwise drives with every pass parked at its breakpoints, as steps says.
// It ends with what the passes came to, or with the action before which the
// drive was left: then nothing behind it has happened.
func (o *driveOptions) driveStepwise(ctx context.Context, e *engaged, lane *engine.Lane, at pursuit) (d engine.DriveOutcome, left *effect.Action, err error) {
	s := &stepper{o: o, e: e, lane: lane, id: at.operation, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = e.Session().Guard(func() (err error) {
			s.outcome, err = o.drivePasses(ctx, lane, at)
			return err
		})
	}()
	steps := s.until
	if o.manual {
		steps = s.obey
	}
	left, err = steps(ctx)
	if left != nil || err != nil {
		// The controlled crash: what is parked never runs (spec §4.7).
		err = firstOf(err, e.Close())
	}
	<-s.done
	if left != nil || err != nil {
		return engine.DriveOutcome{Kind: engine.Yielded, OperationID: at.operation}, left, err
	}
	return s.outcome, nil, s.err
}

// next is the action before which the drive is parked; false when its passes have
// ended. Between two passes, and before the first, nothing is parked.
func (s *stepper) next(ctx context.Context) (effect.Action, bool) {
	for {
		a, ok := s.lane.PeekAction(ctx)
		if ok {
			return a, true
		}
		t := time.NewTimer(time.Millisecond)
		select {
		case <-s.done:
			t.Stop()
			return effect.Action{}, false
		case <-t.C:
		}
	}
}

// until goes on to the stop point.
func (s *stepper) until(ctx context.Context) (*effect.Action, error) {
	reached := 0
	for {
		a, ok := s.next(ctx)
		if !ok {
			return nil, nil
		}
		if a.Kind == s.o.stopBefore.kind {
			if reached++; reached == s.o.stopBefore.n {
				return &a, nil
			}
		}
		s.lane.ExecuteAction(ctx)
	}
}

// obey reads commands until the passes have ended or it is told to quit.
func (s *stepper) obey(ctx context.Context) (*effect.Action, error) {
	commands := s.read(ctx)
	for {
		typed, ok, err := s.parked(ctx, commands)
		if err != nil || !ok {
			return nil, err
		}
		if typed == "" {
			select {
			case typed = <-commands:
			case <-s.done:
				return nil, nil
			}
		}
		if typed == "quit" {
			a, ok := s.next(ctx)
			if !ok {
				return nil, nil
			}
			return &a, nil
		}
		if err := s.command(ctx, typed); err != nil {
			return nil, err
		}
	}
}

// parked waits until the drive is parked; false when its passes have ended. What
// is typed meanwhile waits its turn, but for abort: a running effect must hear it.
func (s *stepper) parked(ctx context.Context, commands <-chan string) (typed string, ok bool, err error) {
	type arrival struct {
		ok  bool
		err error
	}
	arrived := make(chan arrival, 1)
	go func() {
		var a arrival
		a.err = s.e.Session().Guard(func() error {
			_, a.ok = s.next(ctx)
			return nil
		})
		arrived <- a
	}()
	for {
		select {
		case a := <-arrived:
			return typed, a.ok, a.err
		case command := <-commands:
			if command != "abort" {
				typed, commands = command, nil
				continue
			}
			if err := s.command(ctx, command); err != nil {
				return "", false, err
			}
		}
	}
}

func (s *stepper) command(ctx context.Context, command string) error {
	switch command {
	case "peek":
		if a, ok := s.next(ctx); ok {
			return s.print(a)
		}
	case "step":
		if a, ok := s.lane.ExecuteAction(ctx); ok {
			return s.print(a)
		}
	case "run":
		for {
			a, ok := s.next(ctx)
			if !ok {
				return nil
			}
			if _, ok := s.lane.ExecuteAction(ctx); !ok {
				continue
			}
			if err := s.print(a); err != nil {
				return err
			}
		}
	case "abort":
		_, err := s.lane.RequestAbort(ctx, s.id)
		return err
	default:
		s.o.out.note("want peek, step, run, abort or quit, not %q", escapeLine(command))
	}
	return nil
}

// read hands over the lines of stdin that say something; its end is a quit.
func (s *stepper) read(ctx context.Context) <-chan string {
	commands := make(chan string)
	hand := func(command string) bool {
		select {
		case commands <- command:
			return true
		case <-ctx.Done():
		case <-s.done:
		}
		return false
	}
	go func() {
		in := bufio.NewScanner(s.o.out.in)
		for in.Scan() {
			if command := strings.TrimSpace(in.Text()); command != "" && !hand(command) {
				return
			}
		}
		hand("quit")
	}()
	return commands
}

// print shows an action: a line of text, an object a line in ndjson.
func (s *stepper) print(a effect.Action) error {
	if s.o.out.format != formatText {
		return s.o.out.stream(func(d *object) {
			d.str("type", "action")
			writeAction(d, a)
		})
	}
	line := fmt.Sprintf("%-26s %s", a.Kind, a.Description)
	if a.Details != nil {
		line += " " + escapeLine(string(a.Details))
	}
	return s.o.out.write(line + "\n")
}

func writeAction(d *object, a effect.Action) {
	d.str("kind", a.Kind)
	d.str("description", a.Description)
	if a.Details != nil {
		d.raw("details", a.Details)
	}
}

// answerLeft answers a drive that was left on purpose before an action.
func (o *driveOptions) answerLeft(ref store.Ref, id string, d engine.DriveOutcome, left effect.Action) error {
	f := &failure{code: exitLater, tag: "yielded", message: "stopped before " + left.Kind + "; the operation stays open"}
	f.details = func(d *object) {
		d.str("session", ref.ID)
		d.str("lane", o.lane)
		d.str("operationId", id)
	}
	return o.out.result(f.withHint("go on with `drover drive %s`", o.namingLane(ref, o.lane)), func(doc *object) {
		doc.str("session", ref.ID)
		doc.str("lane", o.lane)
		writeDrive(doc, id, d)
		doc.object("stoppedBefore", func(doc *object) { writeAction(doc, left) })
	}, func(io.Writer) error { return nil })
}
