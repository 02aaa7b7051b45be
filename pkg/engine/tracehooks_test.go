package engine_test

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// closeDuringStream closes while the provider hangs: nothing is written to say
// so, and the next drive recovers (spec §4.7).
func closeDuringStream(w *enginetest.World) {
	w.Model.Reply = enginetest.Sequence(enginetest.Reply{Chunks: []string{"par"}, Hang: true}, enginetest.Say("ok"))
	w.Open()
	id := w.Accept("hi")
	w.Trace.Add("> drive")
	ended := make(chan error)
	go func() {
		_, err := w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id})
		ended <- err
	}()
	<-w.Model.Hanging()
	w.Close()
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		w.TB.Fatalf("the drive ended with %v", err)
	}
	w.Reopen()
	w.Continue()
}

// hooks lets two before_run handlers inject, the second seeing the first's
// messages, and two fail.
func hooks(w *enginetest.World) {
	say := func(text string) message.Message { return message.NewUser(text, nil, w.Clock.Now()) }
	w.Options.Hooks.BeforeDrive = []engine.Hook[engine.BeforeDrive, struct{}]{
		func(_ context.Context, in engine.BeforeDrive) (struct{}, error) {
			w.Trace.Add("hook before_drive of a %s on %s", in.Operation, in.Lane)
			return struct{}{}, nil
		},
	}
	w.Options.Hooks.BeforeRun = []engine.Hook[engine.BeforeRun, []message.Message]{
		func(_ context.Context, in engine.BeforeRun) ([]message.Message, error) {
			w.Trace.Add("hook before_run sees %d messages", len(in.Prompt))
			return []message.Message{say("one"), say("two")}, nil
		},
		func(context.Context, engine.BeforeRun) ([]message.Message, error) {
			return []message.Message{say("lost")}, errors.New("no luck")
		},
		func(context.Context, engine.BeforeRun) ([]message.Message, error) {
			return []message.Message{message.Message(`{"role":"nobody"}`)}, nil
		},
		func(_ context.Context, in engine.BeforeRun) ([]message.Message, error) {
			w.Trace.Add("hook before_run sees %d messages", len(in.Prompt))
			return []message.Message{say("three")}, nil
		},
	}
	// The process dies after the hooks ran and before their transition: they run
	// again.
	w.OpenFaulty(2)
	w.Die(w.Accept("hi"))
	w.Reopen()
	w.Continue()
}

// beforeDriveFails rejects one pass and leaves no trace of it in the store.
func beforeDriveFails(w *enginetest.World) {
	calls := 0
	w.Options.Hooks.BeforeDrive = []engine.Hook[engine.BeforeDrive, struct{}]{
		func(context.Context, engine.BeforeDrive) (struct{}, error) {
			calls++
			if calls == 1 {
				return struct{}{}, errors.New("not today")
			}
			return struct{}{}, nil
		},
	}
	w.Open()
	id := w.Accept("hi")
	w.Trace.Add("> drive")
	_, err := w.Lane.Drive(context.Background(), engine.DriveOptions{OperationID: id})
	w.Trace.Add("= %v", err)
	w.Drive(engine.DriveOptions{OperationID: id})
}
