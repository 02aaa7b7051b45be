package engine_test

import (
	"context"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/store"
)

// However a history is driven, what is durable at its end is the same, byte for
// byte, and so is what was told on the way (§9.1, §9.3).
func TestDriveEquivalence(t *testing.T) {
	ways := map[string]func(*testing.T, *enginetest.World){
		"accept and drive": func(t *testing.T, w *enginetest.World) {
			w.Open()
			id := accept(t, w)
			driveTo(t, w, engine.DriveOptions{OperationID: id, WaitForRetry: true})
		},
		"prompt": func(t *testing.T, w *enginetest.World) {
			w.Open()
			if _, err := w.Lane.Prompt(t.Context(), engine.Request{Text: "hi"}); err != nil {
				t.Fatal(err)
			}
		},
		"prompt in manual mode": func(t *testing.T, w *enginetest.World) {
			w.Options.Manual = true
			w.Open()
			done := begin(func() (engine.DriveOutcome, error) {
				return w.Lane.Prompt(context.Background(), engine.Request{Text: "hi"})
			})
			for !over(done) {
				w.Lane.ExecuteAction(t.Context())
			}
			if end := <-done; end.err != nil {
				t.Fatal(end.err)
			}
		},
		"pass by pass, waiting outside": func(t *testing.T, w *enginetest.World) {
			w.Open()
			id := accept(t, w)
			for {
				d := driveTo(t, w, engine.DriveOptions{OperationID: id})
				if d.Kind == engine.Settled {
					return
				}
			}
		},
		"closed and reopened before the first drive": func(t *testing.T, w *enginetest.World) {
			w.Open()
			id := accept(t, w)
			_ = w.Harness.Close()
			w.Open()
			driveTo(t, w, engine.DriveOptions{OperationID: id, WaitForRetry: true})
		},
	}
	for _, s := range enginetest.Scenarios() {
		if len(s.Prompts) > 1 {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			type left struct {
				records []store.Record
				trace   string
			}
			results := map[string]left{}
			for name, way := range ways {
				bubble(t, func(t *testing.T, w *enginetest.World) {
					s.Setup(w)
					way(t, w)
					w.Settled()
					results[name] = left{w.Records(), w.Trace.String()}
				})
			}
			want := results["accept and drive"]
			for name, got := range results {
				enginetest.Equal(t, "durable state after "+name, got.records, want.records)
				enginetest.Equal(t, "trace of "+name, got.trace, want.trace)
			}
		})
	}
}

// accept and driveTo leave nothing of their own in the trace.
func accept(t *testing.T, w *enginetest.World) string {
	t.Helper()
	a, err := w.Lane.Accept(t.Context(), engine.Request{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	return a.OperationID
}

func driveTo(t *testing.T, w *enginetest.World, o engine.DriveOptions) engine.DriveOutcome {
	t.Helper()
	d, err := w.Lane.Drive(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
