package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// A projector that fails faults the harness, wherever it is asked: every later
// call is refused until a process opens the session again (spec §4.8).
func TestFailingProjectorFaults(t *testing.T) {
	no := errors.New("no")
	note := store.PendingEntry{Type: store.TypeCustom, CustomType: "app.note", Payload: []byte(`{}`)}
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, w *enginetest.World) error
	}{
		{"building a request", func(t *testing.T, w *enginetest.World) error {
			addNote(t, w, note)
			_, err := w.Lane.Prompt(t.Context(), engine.Request{Text: "hi"})
			return err
		}},
		{"placing a deferred write", func(t *testing.T, w *enginetest.World) error {
			id := w.Accept("hi")
			addNote(t, w, note)
			_, err := w.Lane.Drive(t.Context(), engine.DriveOptions{OperationID: id})
			return err
		}},
		{"preparing a compaction", func(t *testing.T, w *enginetest.World) error {
			w.Prompt("hi")
			addNote(t, w, note)
			_, err := w.Lane.AcceptCompaction(t.Context(), engine.CompactRequest{})
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			broken := func(store.Entry) ([]message.Message, error) { return nil, no }
			w.Options.Projectors = map[string]engine.Projector{"app.note": broken}
			w.Open()
			told := make(chan op.Event, 1)
			w.Harness.On(func(e op.Event) {
				if e.Type == op.EventFault {
					told <- e
				}
			})
			err := tt.run(t, w)
			var fault *store.Fault
			if !errors.As(err, &fault) || !errors.Is(err, no) || w.Session.Fault() == nil {
				t.Fatalf("ended with %v, fault %v", err, w.Session.Fault())
			}
			if e := <-told; e.ErrorText != fault.Error() {
				t.Errorf("told %q, want %q", e.ErrorText, fault)
			}
			if _, err = w.Lane.Accept(t.Context(), engine.Request{Text: "again"}); !errors.As(err, &fault) {
				t.Errorf("a later call: %v", err)
			}
			before := w.Records()
			w.Options.Projectors = nil
			w.Reopen()
			enginetest.Equal(t, "what the fault left", w.Records(), before)
			if err := w.Play(t.Context(), []string{"hi"}); err != nil {
				t.Fatal(err)
			}
			w.Settled()
		})
	}
}

func addNote(t *testing.T, w *enginetest.World, note store.PendingEntry) {
	t.Helper()
	if _, _, err := w.Lane.Append(context.Background(), "", note); err != nil {
		t.Fatal(err)
	}
}

// Images that the model does not take are left out of the request, and the answer
// says how many.
func TestOmittedImagesAreNoted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		takes bool
		want  string
	}{
		{"taken", true, ""},
		{"left out", false, `[{"type":"images_omitted","count":2}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.Model.ModelInfo.Images = tt.takes
			w.Open()
			image := message.Block{Type: message.BlockImage, Data: "AAAA", MimeType: "image/png"}
			d, err := w.Lane.Prompt(t.Context(), engine.Request{Text: "see", Images: []message.Block{image, image}})
			if err != nil {
				t.Fatal(err)
			}
			got, _ := d.Outcome.FinalMessage.Get("diagnostics")
			enginetest.Equal(t, "diagnostics", string(got), tt.want)
		})
	}
}

// A thinking level that the model lacks is lowered in the request, and the answer
// says so beside what the provider noted (behaviours §1).
func TestClampedThinkingIsNoted(t *testing.T) {
	for _, tt := range []struct {
		name      string
		supported []message.ThinkingLevel
		reply     enginetest.Reply
		used      message.ThinkingLevel
		want      string
	}{
		{"supported", []message.ThinkingLevel{message.ThinkingHigh}, enginetest.Say("ok"), message.ThinkingHigh, ""},
		{"lowered", []message.ThinkingLevel{message.ThinkingLow}, enginetest.Say("ok"), message.ThinkingLow, `[{"type":"thinking_clamped","requested":"high","used":"low"}]`},
		{"off", nil, enginetest.Say("ok"), message.ThinkingOff, `[{"type":"thinking_clamped","requested":"high","used":"off"}]`},
		{
			"beside a provider's note", nil, enginetest.Refuse("no", 400, 0), message.ThinkingOff,
			`[{"type":"provider_error","status":400},{"type":"thinking_clamped","requested":"high","used":"off"}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.InMemory(t)
			w.Model.ModelInfo.Thinking = tt.supported
			w.Model.Reply = enginetest.Sequence(tt.reply)
			w.Open()
			high := message.ThinkingHigh
			d, err := w.Lane.Prompt(t.Context(), engine.Request{Text: "hi", Configure: engine.Configure{ThinkingLevel: &high}})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Model.Requests()[0].Thinking; got != tt.used {
				t.Errorf("the request thinks %s, want %s", got, tt.used)
			}
			got, _ := d.Outcome.FinalMessage.Get("diagnostics")
			enginetest.Equal(t, "diagnostics", string(got), tt.want)
			if tt.reply.Note.Known && message.ProviderError(d.Outcome.FinalMessage).Status != 400 {
				t.Error("the provider's note is gone")
			}
		})
	}
}
