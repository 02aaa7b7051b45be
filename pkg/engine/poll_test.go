package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/message"
)

// Why a poll was not answered is told by the pass that made it, and by whoever looks
// at the session until the next one; the JSON of neither says it.
func TestPollFailed(t *testing.T) {
	w := enginetest.InMemory(t)
	handle := json.RawMessage(`{"provider":"acme","modelId":"one","api":"echo","id":"job"}`)
	refused := message.ErrorInfo{Known: true, Status: 401, Class: message.ClassAuth, Text: "go away"}
	polls := []enginetest.Reply{{Deferred: handle, Note: refused}, {Deferred: handle}}
	w.Models.Add(w.Defer(func(message.DeferredHandle, effect.Request) (next enginetest.Reply) {
		next, polls = polls[0], polls[1:]
		return next
	}))
	w.Model.Reply = enginetest.Sequence(enginetest.Reply{Deferred: handle})
	w.Options.StreamOptions.Deferred = json.RawMessage(`true`)
	w.Open()
	id := w.Accept("go")
	for _, tt := range []struct {
		name string
		poll bool
		told message.ErrorInfo // by the pass
		seen message.ErrorInfo // by whoever looks
	}{
		{"the submission", false, message.ErrorInfo{}, message.ErrorInfo{}},
		{"a poll that is refused", true, refused, refused},
		{"a pass that does not poll", false, message.ErrorInfo{}, refused},
		{"a poll that is answered", true, message.ErrorInfo{}, message.ErrorInfo{}},
	} {
		d := w.Drive(engine.DriveOptions{OperationID: id, PollDeferred: tt.poll})
		enginetest.Equal(t, tt.name+": the wait", d.Reason, engine.WaitDeferred)
		enginetest.Equal(t, tt.name+": told", d.PollFailed, tt.told)
		info, err := w.Lane.InspectExecution(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		enginetest.Equal(t, tt.name+": seen", info.Current.Suspended.PollFailed, tt.seen)
		for _, shown := range []json.Marshaler{d, info} {
			if text, err := shown.MarshalJSON(); err != nil || strings.Contains(string(text), "go away") {
				t.Errorf("%s: %s, %v", tt.name, text, err)
			}
		}
	}
}
