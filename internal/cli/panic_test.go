package cli

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// breaking answers for every model and panics in the middle of an answer.
type breaking struct{ effect.Models }

func (m breaking) Resolve(ref message.ModelRef) (effect.Model, error) {
	model, err := m.Models.Resolve(ref)
	return breakingModel{model}, err
}

type breakingModel struct{ effect.Model }

func (m breakingModel) Stream(ctx context.Context, req effect.Request) iter.Seq[message.StreamEvent] {
	return func(yield func(message.StreamEvent) bool) {
		for e := range m.Model.Stream(ctx, req) {
			if e.Type == message.EventTextDelta {
				panic("a defect of ours")
			}
			if !yield(e) {
				return
			}
		}
	}
}

// TestPanicOfTheEngine: a defect behind the engine's goroutines ends a command
// with 70 and a sentence, and the session is given up, whole and resumable.
func TestPanicOfTheEngine(t *testing.T) {
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			home := t.TempDir()
			call := func(broken bool, args ...string) (exitCode, string, string) {
				var stdout, stderr bytes.Buffer
				env := []string{"HOME=" + home, "TMPDIR=" + home, "DROVER_REPO=" + home + "/repo", "DROVER_RETRY_BASE_DELAY=1ms"}
				f := newFactory(env, newStreams(strings.NewReader(""), &stdout, &stderr))
				if broken {
					sound := f.models
					f.models = func() effect.Models { return breaking{sound()} }
				}
				code := run(f, args)
				return code, stdout.String(), stderr.String()
			}
			const id = "01a22806-a33a-7534-9138-4df2cd21fbc0"
			code, stdout, stderr := call(true, "prompt", "--new", "--id", id, "--backend", backend, "hello")
			want := "session: " + id + "\ndrover: internal error: a defect of ours; the session was closed as it stood\n" +
				"hint: go on with `drover drive " + id + "`\n"
			if code != exitInternal || stdout != "" || stderr != want {
				t.Errorf("exit %d, stdout %q, stderr %q, want %q", code, stdout, stderr, want)
			}
			code, stdout, stderr = call(true, "drive", id, "--wait-retry", "--json")
			tag, _ := lookupField(stderr, "code")
			stack, _ := lookupField(stderr, "details.stack")
			if code != exitInternal || tag != "fault" || !strings.Contains(stack, "breakingModel") || stdout != "" {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if code, stdout, stderr = call(false, "inspect", id, "--json"); code != exitOK {
				t.Fatalf("inspect: exit %d: %s", code, stderr)
			}
			if lease, err := lookupField(stdout, "lease"); err != nil || lease != "null" {
				t.Errorf("the lease is %s, %v", lease, err)
			}
			if code, stdout, stderr = call(false, "drive", id, "--wait-retry"); code != exitOK || stdout != "hello\n" {
				t.Errorf("the next drive: exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if code, _, stderr = call(false, "verify", id); code != exitOK {
				t.Errorf("verify: exit %d: %s", code, stderr)
			}
		})
	}
}
