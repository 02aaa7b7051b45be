package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// The wait of an abort runs out while the owner is parked before the end: 75 with
// the document, whatever the wait was, and the cancellation stands.
func TestAbortWhoseWaitRunsOut(t *testing.T) {
	home := t.TempDir()
	there, err := neighbour(t, home).drivingBase("drive")
	if err != nil {
		t.Fatal(err)
	}
	s, ref, err := there.repo.Create(t.Context(), store.CreateOptions{Backend: "jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	options, err := there.harnessOptions(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	options.Manual = true
	err = there.engageWith(t.Context(), ref, options, func(e *engaged) error {
		lane, err := e.Lane(store.MainLane)
		if err != nil {
			return err
		}
		a, err := lane.Accept(t.Context(), engine.Request{Text: "hello"})
		if err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() {
			_, err := lane.Drive(t.Context(), engine.DriveOptions{OperationID: a.OperationID})
			done <- err
		}()
		for parked := false; !parked; { // the pass is installed by a job of the lane
			if _, err := lane.InspectExecution(t.Context()); err != nil {
				return err
			}
			_, parked = lane.PeekAction(t.Context())
		}
		for i, wait := range []string{"0s", "1ms", "20ms"} {
			var stdout, stderr bytes.Buffer
			f := newFactory(homeEnv(home), newStreams(strings.NewReader(""), &stdout, &stderr))
			if code := run(f, []string{"abort", ref.ID, "--wait", wait, "--json"}); code != exitLater {
				t.Errorf("--wait %s: exit %d", wait, code)
			}
			first := "false"
			if i == 0 {
				first = "true"
			}
			want := `{"session":"` + ref.ID + `","lane":"main","operationId":"` + a.OperationID + `","newlyRequested":` + first +
				`,"steer":[],"followUp":[],"outcome":null,"notBefore":null,"exit":{"code":75,"name":"later"}}` + "\n"
			if stdout.String() != want {
				t.Errorf("--wait %s answers\n%swant\n%s", wait, stdout.String(), want)
			}
			if tag, _ := lookupField(stderr.String(), "code"); tag != "waiting" {
				t.Errorf("--wait %s: %s", wait, stderr.String())
			}
		}
		lane.RunToCompletion(t.Context())
		return <-done
	})
	if err != nil {
		t.Error(err)
	}
}
