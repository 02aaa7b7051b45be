package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
// in bytes, and a folder; or the word drover and those of a command.
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

// BenchmarkAnswerMemoryOfProviders is the same for the command line and an answer that
// comes over the network: the peaks of prompts with answers of 5 MB and 50 MB over that
// of one with an answer of a few words (D63), and by how many bytes the peak grows for
// each byte that the longer one has more.
func BenchmarkAnswerMemoryOfProviders(b *testing.B) {
	const short, long = 5, 50
	for _, api := range vendorInterfaces() {
		b.Run(api.name, func(b *testing.B) {
			peaks := map[int]float64{}
			for b.Loop() {
				least := providerPeak(b, api, 1<<10)
				for _, mb := range []int{short, long} {
					peaks[mb] = max(peaks[mb], providerPeak(b, api, mb<<20)-least)
				}
			}
			for mb, peak := range peaks {
				b.ReportMetric(peak, fmt.Sprintf("MB-of-%dMB", mb))
			}
			b.ReportMetric((peaks[long]-peaks[short])/(long-short), "peak/answer")
		})
	}
}

// providerPeak is the peak of a prompt with an answer of that many bytes, in MB.
func providerPeak(tb testing.TB, api vendorInterface, size int) float64 {
	tb.Helper()
	const chunk = 1 << 10
	events := api.begun(strings.Repeat("lorem ip", chunk/8))
	rest := api.text(strings.Repeat("lorem ip", size/8))[len(events):]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		last := len(events) - 1
		writeEvents(w, events[:last])
		for range size / chunk {
			writeEvents(w, events[last:])
		}
		writeEvents(w, rest)
	}))
	defer server.Close()
	dir := tb.TempDir()
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("{repo: %q, providers: {%s: {base_url: %q, models: {llama: {context_window: 200000, max_tokens: 32000}}}}}", dir, api.provider(), server.URL+api.path)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return childPeak(tb, "drover", "prompt", "-q", "--new", "hi", "--model", api.model, "--config", config)
}

// answerPeak is the peak of a run without a command line, in MB.
func answerPeak(tb testing.TB, driver string, mb int) float64 {
	tb.Helper()
	return childPeak(tb, driver, strconv.Itoa(mb<<20), strconv.Itoa(1<<10), tb.TempDir())
}

func childPeak(tb testing.TB, args ...string) float64 {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Args = append([]string{answerChild}, args...)
	cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=sk-test", "OPENAI_API_KEY=sk-test")
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
	if args[0] == "drover" {
		if code := Main(args[1:], os.Environ(), strings.NewReader(""), io.Discard, os.Stderr); code != 0 {
			return fmt.Errorf("exit code %d", code)
		}
		return nil
	}
	tuneCollector()
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
