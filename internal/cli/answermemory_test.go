package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// answerChild is the name by which the test binary is the process whose memory is
// measured. Its arguments are an encoding, the sizes of the answer and of a chunk
// in bytes, and a folder.
const answerChild = "answer-child"

// BenchmarkAnswerMemory is by how many bytes the peak of a process grows for each
// byte more of the answer that it gets (D41): the growth of VmHWM between a run
// with a short answer and one with a long one, each in a process of its own.
func BenchmarkAnswerMemory(b *testing.B) {
	const short = 10 // where the constant room of the collector is used up
	for _, driver := range []string{"jsonl", "sqlite"} {
		for _, mb := range []int{30, 100} {
			b.Run(fmt.Sprintf("%s/%dMB", driver, mb), func(b *testing.B) {
				growth := 0.0
				for b.Loop() {
					growth = max(growth, answerPeak(b, driver, mb)-answerPeak(b, driver, short))
				}
				b.ReportMetric(growth/float64(mb-short), "peak/answer")
			})
		}
	}
}

// answerPeak is the peak of a process, in MB.
func answerPeak(tb testing.TB, driver string, mb int) float64 {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Args = []string{answerChild, driver, strconv.Itoa(mb << 20), strconv.Itoa(1 << 10), tb.TempDir()}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	kb, convErr := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil || convErr != nil {
		tb.Fatalf("child said %q: %v", out, err)
	}
	return kb / 1024
}

func answerMain() {
	err := runAnswer(os.Args[1:])
	status, statusErr := os.ReadFile("/proc/self/status")
	if err = errors.Join(err, statusErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println(strings.Fields(rest)[0])
}

func runAnswer(args []string) error {
	tightenCollector()
	size, err1 := strconv.Atoi(args[1])
	chunk, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	driver := map[string]store.Driver{"jsonl": jsonl.Driver{}, "sqlite": sqlite.Driver{}}[args[0]]
	return promptOnce(driver, args[3], longWinded{size: size, chunk: chunk})
}

// promptOnce runs one prompt in a new session, with a listener as the command
// line has one.
func promptOnce(driver store.Driver, dir string, model longWinded) error {
	ctx := context.Background()
	repo, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: []store.Driver{driver}})
	if err != nil {
		return err
	}
	s, _, err := repo.Create(ctx, store.CreateOptions{
		Config: &store.LaneConfiguration{Model: enginetest.Ref, ThinkingLevel: message.ThinkingOff, ActiveToolNames: []string{}},
	})
	if err != nil {
		return err
	}
	h, err := engine.New(ctx, engine.Options{Session: s, Models: model, Now: func() int64 { return time.Now().UnixMilli() }})
	if err != nil {
		return err
	}
	h.On(func(op.Event) {})
	lane, err := h.Lane(store.MainLane)
	if err != nil {
		return err
	}
	d, err := lane.Prompt(ctx, engine.Request{Text: "hi"})
	if err == nil && d.Outcome.Kind != op.Completed {
		err = fmt.Errorf("the run ended as %v", d.Outcome)
	}
	if err != nil {
		return err
	}
	return h.Close()
}

// longWinded is a registry with one model. It makes its answer while it is streamed
// and keeps nothing of it but what its last two events need: the whole text.
type longWinded struct{ size, chunk int }

func (m longWinded) Resolve(message.ModelRef) (effect.Model, error) { return m, nil }

func (longWinded) Info() effect.ModelInfo {
	return effect.ModelInfo{Ref: enginetest.Ref, API: "echo", ContextWindow: 1 << 40, MaxTokens: 1 << 30}
}

func (m longWinded) Stream(context.Context, effect.Request) effect.Events {
	return func(yield func(message.StreamEvent) bool) {
		a := message.Assistant{API: "echo", Provider: "acme", Model: "one", StopReason: message.StopPending, Timestamp: enginetest.Start}
		if !yield(message.StreamEvent{Type: message.EventStart, Message: a.Message()}) ||
			!yield(message.StreamEvent{Type: message.EventTextStart, Block: message.Block{Type: message.BlockText}}) {
			return
		}
		for at := 0; at < m.size; at += m.chunk {
			if !yield(message.StreamEvent{Type: message.EventTextDelta, Delta: m.text(m.chunk)}) {
				return
			}
		}
		block := message.TextBlock(m.text(m.size))
		if !yield(message.StreamEvent{Type: message.EventTextEnd, Block: block}) {
			return
		}
		a.Content, a.StopReason = []message.Block{block}, message.StopStop
		final, _ := a.AppendJSON(make([]byte, 0, m.size+1<<10))
		yield(message.StreamEvent{Type: message.EventDone, Reason: message.StopStop, Message: final})
	}
}

func (longWinded) text(size int) string { return strings.Repeat("lorem ip", size/8) }
