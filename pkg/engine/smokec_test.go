package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
)

type fakeC struct {
	script []message.Assistant
	reqs   []effect.Request
	hang   chan struct{}
}

func (f *fakeC) Resolve(ref message.ModelRef) (effect.Model, error) { return f, nil }
func (f *fakeC) Info() effect.ModelInfo {
	return effect.ModelInfo{Ref: message.ModelRef{Provider: "p", ModelID: "m"}, ContextWindow: 100000, MaxTokens: 1000, API: "x"}
}
func (f *fakeC) Stream(ctx context.Context, r effect.Request) effect.Events {
	f.reqs = append(f.reqs, r)
	a := message.Assistant{StopReason: message.StopStop, Content: []message.Block{message.TextBlock(fmt.Sprintf("answer %d", len(f.reqs)))}}
	if len(f.script) > 0 {
		a, f.script = f.script[0], f.script[1:]
	}
	a.API, a.Provider, a.Model, a.Timestamp = "x", "p", "m", 1
	return func(yield func(message.StreamEvent) bool) {
		if f.hang != nil {
			select {
			case <-f.hang:
			case <-ctx.Done():
				a.StopReason = message.StopAborted
				yield(message.StreamEvent{Type: message.EventError, Message: a.Message(), Reason: a.StopReason})
				return
			}
		}
		yield(message.StreamEvent{Type: message.EventDone, Message: a.Message(), Reason: a.StopReason})
	}
}

type fakeTool struct {
	name string
	run  func(ctx context.Context, c effect.Invocation) (message.ToolResult, error)
}

func (f fakeTool) Spec() message.ToolSpec                             { return message.ToolSpec{Name: f.name} }
func (f fakeTool) ReplaySafe() bool                                   { return false }
func (f fakeTool) Prepare(a json.RawMessage) (json.RawMessage, error) { return a, nil }
func (f fakeTool) Execute(ctx context.Context, c effect.Invocation) (message.ToolResult, error) {
	return f.run(ctx, c)
}

type toolMap map[string]effect.Tool

func (m toolMap) Lookup(n string) (effect.Tool, bool) { t, ok := m[n]; return t, ok }

func openC(t *testing.T, m effect.Models, tools toolMap) (*Harness, *Lane) {
	ctx := context.Background()
	d := &memory.Driver{}
	snap := &store.Snapshot{Header: store.Header{ID: "s", StorageVersion: 1}, NextSeq: 1, Records: func(func(store.Record, error) bool) {}, Close: func() error { return nil }}
	if err := d.Build(ctx, "/x/s.mem", snap, store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := d.Open(ctx, "/x/s.mem", store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(ctx, store.Tx{store.LaneLeaf("main").Set(""), store.LaneStateOf("main").Set(store.LaneState{})}); err != nil {
		t.Fatal(err)
	}
	s := store.NewSession(b, store.SessionOptions{})
	names := []string{}
	for n := range tools {
		names = append(names, n)
	}
	h, err := New(ctx, Options{Session: s, Models: m, Tools: tools, Seed: store.LaneConfiguration{Model: message.ModelRef{Provider: "p", ModelID: "m"}, ActiveToolNames: names},
		Compaction: op.CompactionSettings{Enabled: true, ReserveTokens: 100, KeepRecentTokens: 1}})
	if err != nil {
		t.Fatal(err)
	}
	h.On(func(e Event) {
		b, err := e.MarshalJSON()
		if !json.Valid(b) || err != nil {
			t.Errorf("bad event %s %v", b, err)
		}
		s := string(b)
		if len(s) > 160 {
			s = s[:160]
		}
		t.Log(s)
	})
	l, _ := h.Lane("main")
	return h, l
}

func call(id, name string) message.Block {
	return message.Block{Type: message.BlockToolCall, ID: id, Name: name, Arguments: json.RawMessage(`{}`)}
}

func TestSmokeTools(t *testing.T) {
	ctx := context.Background()
	m := &fakeC{script: []message.Assistant{{StopReason: message.StopToolUse, Content: []message.Block{call("a", "slow"), call("b", "fast"), call("c", "nope")}}}}
	gate := make(chan struct{})
	tools := toolMap{
		"slow": fakeTool{"slow", func(ctx context.Context, c effect.Invocation) (message.ToolResult, error) {
			<-gate
			return message.ToolResult{Content: []message.Block{message.TextBlock("slow done")}}, nil
		}},
		"fast": fakeTool{"fast", func(ctx context.Context, c effect.Invocation) (message.ToolResult, error) {
			c.Update(message.ToolResult{Content: []message.Block{message.TextBlock("half")}}, true)
			c.Memos.Set(ctx, "k", json.RawMessage(`1`))
			close(gate)
			return message.ToolResult{Content: []message.Block{message.TextBlock("fast done")}}, nil
		}},
	}
	h, l := openC(t, m, tools)
	out, err := l.Prompt(ctx, Request{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	js, _ := out.MarshalJSON()
	t.Logf("%s", js)
	for _, x := range m.reqs[1].Messages {
		t.Logf("req2 %s", x)
	}
	c, err := l.Compact(ctx, CompactRequest{})
	js, _ = c.MarshalJSON()
	t.Logf("%s %v", js, err)
	n, err := l.Navigate(ctx, NavigateRequest{Target: ""})
	js, _ = n.MarshalJSON()
	t.Logf("%s %v", js, err)
	h.Close()
}

func TestSmokeAbort(t *testing.T) {
	ctx := context.Background()
	m := &fakeC{hang: make(chan struct{})}
	h, l := openC(t, m, nil)
	a, err := l.Accept(ctx, Request{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan DriveOutcome)
	go func() { o, err := l.Drive(ctx, DriveOptions{OperationID: a.OperationID}); t.Log(err); done <- o }()
	time.Sleep(50 * time.Millisecond)
	if _, err := l.Steer(ctx, Queued{Text: "also"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.NextRun(ctx, Queued{Text: "next"}); err != nil {
		t.Fatal(err)
	}
	r, err := l.Abort(ctx)
	js, _ := r.MarshalJSON()
	t.Logf("%s %v", js, err)
	o := <-done
	js, _ = o.MarshalJSON()
	t.Logf("%s", js)
	h.Close()
}
