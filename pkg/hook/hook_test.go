package hook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/tool"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == tool.SupervisorArg {
		os.Exit(tool.SupervisorMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// world is where the programs of a test run: each keeps its event in a file.
type world struct {
	t   *testing.T
	dir string
}

func newWorld(t *testing.T) world { return world{t, t.TempDir()} }

// hooks are those of one program that answers with a text.
func (w world) hooks(p Point, answer string) engine.Hooks {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "answer"), []byte(answer), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return w.running(Program{Point: p, Argv: []string{"sh", "-c", "cat >event; cat answer"}})
}

func (w world) running(programs ...Program) engine.Hooks {
	for i := range programs {
		if programs[i].Name == "" {
			programs[i].Name = "mine"
		}
		if programs[i].Timeout == 0 {
			programs[i].Timeout = time.Minute
		}
	}
	return Hooks(programs, Options{
		SessionID: "s1", CWD: w.dir, Now: func() int64 { return 5 },
		StripEnv: func(name string) bool { return strings.HasPrefix(name, "HOOKTEST_KEY") },
	})
}

// event is the last event that a program got.
func (w world) event() string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.dir, "event"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

const (
	asked    = `{"role":"user","content":"a <b> \ud83d","timestamp":1}`
	answered = `{"role":"assistant","content":[],"stopReason":"stop","timestamp":1}`
)

var info = effect.ModelInfo{Ref: message.ModelRef{Provider: "p", ModelID: "m"}, API: "x", ContextWindow: 9, MaxTokens: 3}

// call is a hook with its event in and its answer out, both as JSON.
type call struct {
	point  Point
	event  string // behind what all events begin with
	answer string
	want   string // the handler's answer, as JSON of its Go form
	do     func(context.Context, engine.Hooks) (any, error)
}

func calls() []call {
	prep := op.Preparation{Kind: op.SummaryBranch, Messages: []message.Message{message.Message(asked)}}
	system, usage := "be brief", message.Usage{Input: 1}
	summary := func(point Point, hooks func(engine.Hooks) []engine.Hook[engine.BeforeSummary, engine.SummaryDecision], event, answer, want string) call {
		return call{point, event, answer, want, func(ctx context.Context, h engine.Hooks) (any, error) {
			return hooks(h)[0](ctx, engine.BeforeSummary{
				Lane: "main", RunID: "o1", Reason: op.ReasonManual, TargetID: "e1", Preparation: prep, CustomInstructions: "short",
			})
		}}
	}
	const prepared = `"customInstructions":"short","preparation":{"kind":"branch_summary","messages":[` + asked + `],"fileOps":{"read":null,"written":null,"edited":null},"totalTokens":0}`
	return []call{
		{
			BeforeDrive, `"operation":"run"`, `{}`, `null`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return nil, h.BeforeDrive[0](ctx, engine.BeforeDrive{Lane: "main", RunID: "o1", Operation: op.KindRun})
			},
		},
		{
			BeforeRun, `"prompt":[` + asked + `]`, `{"messages":[{"role":"user","content":"more"}]}`,
			`[{"role":"user","content":"more","timestamp":5}]`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return h.BeforeRun[0](ctx, engine.BeforeRun{Lane: "main", RunID: "o1", Prompt: []message.Message{message.Message(asked)}})
			},
		},
		{
			BeforeRunEnd, `"messages":[]`, `{"followUp":"and then?"}`, `"and then?"`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return h.BeforeRunEnd[0](ctx, engine.BeforeRunEnd{Lane: "main", RunID: "o1"})
			},
		},
		{
			TransformContext, `"messages":[` + asked + `],"systemPrompt":"be brief"`, `{"messages":[],"systemPrompt":""}`,
			`{"Lane":"","RunID":"","Messages":[],"SystemPrompt":""}`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return h.TransformContext[0](ctx, engine.RequestContext{Lane: "main", RunID: "o1", Messages: []message.Message{message.Message(asked)}, SystemPrompt: &system})
			},
		},
		{
			BeforeRequest, `"model":{"provider":"p","modelId":"m","api":"x","contextWindow":9,"maxTokens":3},"step":"assistant","attempt":2,"streamOptions":{"temperature":0.5}`,
			`{"streamOptions":{"maxTokens":7,"deferred":{"window":"1h"}}}`, `{"maxTokens":7,"deferred":{"window":"1h"}}`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				half := 0.5
				return h.BeforeRequest[0](ctx, engine.BeforeRequest{Lane: "main", RunID: "o1", Model: info, Step: "assistant", Attempt: 2, Options: message.StreamOptions{Temperature: &half}})
			},
		},
		{
			BeforePayload, `"model":{"provider":"p","modelId":"m","api":"x","contextWindow":9,"maxTokens":3},"payload":{"a":1.0}`,
			`{"payload":{"a": 2.0}}`, `{"a":2.0}`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return h.BeforePayload[0](ctx, engine.BeforePayload{Lane: "main", RunID: "o1", Model: info, Payload: json.RawMessage(`{"a":1.0}`)})
			},
		},
		{
			AfterResponse, `"status":200,"headers":{"a":"1","b":"2"},"message":` + answered, `{"message":` + answered + `}`, answered,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return h.AfterResponse[0](ctx, engine.AfterResponse{
					Lane: "main", RunID: "o1", Message: message.Message(answered),
					Metadata: message.ResponseMetadata{Status: 200, Headers: map[string]string{"b": "2", "a": "1"}},
				})
			},
		},
		{
			BeforeTool, `"toolCallId":"c1","toolName":"bash","args":{"command":"ls"}`, `{"block":{"reason":"no","terminate":true}}`,
			`{"Args":null,"Block":"no","Terminate":true}`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				return h.BeforeTool[0](ctx, engine.BeforeTool{Lane: "main", RunID: "o1", ToolCallID: "c1", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)})
			},
		},
		{
			AfterTool,
			`"toolCallId":"c1","toolName":"bash","args":{},"isError":false,"usage":` + string(must(usage.AppendJSON(nil))) + `,"details":{"d":1},"content":[{"type":"text","text":"out"}]`,
			`{"isError":true,"content":[{"type":"text","text":"gone","x":1}],"details":{"e":2},"terminate":true}`,
			`{"Content":["{\"type\":\"text\",\"text\":\"gone\",\"x\":1}"],"Details":{"e":2},"IsError":true,"Usage":null,"Terminate":true}`,
			func(ctx context.Context, h engine.Hooks) (any, error) {
				patch, err := h.AfterTool[0](ctx, engine.AfterTool{
					Lane: "main", RunID: "o1", ToolCallID: "c1", Name: "bash", Args: json.RawMessage(`{}`),
					Result: message.ToolResult{Content: []message.Block{message.TextBlock("out")}, Details: json.RawMessage(`{"d":1}`), Usage: &usage},
				})
				return struct {
					Content   []string
					Details   json.RawMessage
					IsError   *bool
					Usage     *message.Usage
					Terminate *bool
				}{raws(patch.Content), patch.Details, patch.IsError, patch.Usage, patch.Terminate}, err
			},
		},
		summary(BeforeCompaction, func(h engine.Hooks) []engine.Hook[engine.BeforeSummary, engine.SummaryDecision] {
			return h.BeforeCompaction
		},
			`"reason":"manual",`+prepared, `{"compaction":{"summary":"all","details":{"a":1}}}`,
			`{"Decline":false,"Summary":{"Text":"all","Details":{"a":1},"Usage":null}}`),
		summary(BeforeNavigation, func(h engine.Hooks) []engine.Hook[engine.BeforeSummary, engine.SummaryDecision] {
			return h.BeforeNavigation
		},
			`"targetId":"e1",`+prepared, `{"decline":true}`, `{"Decline":true,"Summary":null}`),
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

func raws(blocks []message.Block) []string {
	var all []string
	for _, b := range blocks {
		all = append(all, string(b.Raw))
	}
	return all
}

// What a program reads and what its answer becomes, point by point.
func TestWire(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		t.Run(string(c.point), func(t *testing.T) {
			w := newWorld(t)
			got, err := c.do(t.Context(), w.hooks(c.point, c.answer+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			want := `{"hook":"` + string(c.point) + `","lane":"main","runId":"o1","sessionId":"s1","cwd":"` + w.dir + `",` + c.event + "}\n"
			if diff := cmp.Diff(want, w.event()); diff != "" {
				t.Errorf("event: %s", diff)
			}
			if raw, err := json.Marshal(got); err != nil || string(raw) != c.want {
				t.Errorf("got %s, %v\nwant %s", raw, err, c.want)
			}
			for name := range eventFields(t, w.event()) {
				if s := c.point.shape(); !slices.Contains(Common(), name) && !slices.Contains(s.Event, name) {
					t.Errorf("%s is in no shape", name)
				}
			}
		})
	}
}

func eventFields(t *testing.T, event string) map[string]json.RawMessage {
	t.Helper()
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(event), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Nothing at all, an empty object and the event itself change nothing.
func TestNoChange(t *testing.T) {
	t.Parallel()
	silent := [][]string{{"true"}, {"echo", "{}"}, {"sh", "-c", "echo; echo"}, {"sh", "-c", "exec <&-"}}
	for i, c := range calls() {
		argv := silent[i%len(silent)]
		got, err := c.do(t.Context(), newWorld(t).running(Program{Point: c.point, Argv: argv}))
		if err != nil {
			t.Errorf("%s %q: %v", c.point, argv, err)
		}
		raw, _ := json.Marshal(got)
		for _, mark := range []string{"more", "all", "gone", "true", "then"} {
			if strings.Contains(string(raw), mark) {
				t.Errorf("%s %q: %s", c.point, argv, raw)
			}
		}
		if _, err := c.do(t.Context(), newWorld(t).running(Program{Point: c.point, Argv: []string{"cat"}})); err != nil {
			t.Errorf("%s with its event as the answer: %v", c.point, err)
		}
	}
}

// Every answer that is not what it must be is a failure that says why.
func TestAnswersRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		point  Point
		answer string
		why    string // ends the error
	}{
		{BeforeDrive, `{"x":1}`, `its answer has the unknown field "x"; the fields are: none`},
		{BeforeRun, `{"message":[]}`, `its answer has the unknown field "message"; the fields are: messages`},
		{BeforeRun, `{`, "its answer is not JSON: unexpected end of text"},
		{BeforeRun, `{} {}`, "its answer is not JSON: unexpected text after the value"},
		{BeforeRun, `[]`, "its answer is no JSON object"},
		{BeforeRun, "{\"messages\":\"\xff\"}", "its answer is not UTF-8 at byte 13"},
		{BeforeRun, `{"messages":{}}`, "messages must be a list of messages"},
		{BeforeRun, `{"messages":[{"role":"user"}]}`, "messages[0]: message field content is missing"},
		{BeforeRunEnd, `{"followUp":1}`, "followUp must be text"},
		{BeforeRunEnd, `{"followUp":"\ud83d"}`, "followUp has half a character"},
		{TransformContext, `{"messages":[1]}`, "messages[0]: message is not a JSON object"},
		{BeforeRequest, `{"streamOptions":{"maxTokens":"1"}}`, "streamOptions.maxTokens is string, want a whole number"},
		{BeforeRequest, `{"streamOptions":{"maxTokens":0}}`, "streamOptions.maxTokens must be 1 or more"},
		{BeforeRequest, `{"streamOptions":{"model":"x"}}`, `streamOptions has the unknown field "model"; the fields are: maxTokens, temperature, deferred`},
		{BeforeRequest, `{"streamOptions":{"deferred":"1h"}}`, "streamOptions.deferred must be true, false or an object"},
		{AfterResponse, `{"message":{"role":"user","content":"x"}}`, "message is not of the assistant"},
		{AfterResponse, `{"message":{"role":"assistant","content":[],"stopReason":"pending"}}`, "message field stopReason is pending: the answer has not ended"},
		{AfterResponse, `{"message":{"role":"assistant","content":[],"stopReason":"aborted"}}`, "message is aborted, which only an abort makes it"},
		{BeforeTool, `{"args":[]}`, "args must be an object"},
		{BeforeTool, `{"block":"no"}`, `block must be an object, as {"reason":"…"}`},
		{BeforeTool, `{"block":{"terminate":true}}`, "block has no reason"},
		{BeforeTool, `{"block":{"reason":"x","terminate":"yes"}}`, "terminate must be true or false"},
		{AfterTool, `{"content":"x"}`, "content must be a list of content blocks"},
		{AfterTool, `{"content":[{"type":"thinking","thinking":""}]}`, `message field content[0].type "thinking" does not belong here`},
		{AfterTool, `{"isError":0}`, "isError must be true or false"},
		{AfterTool, `{"usage":{"input":-100000}}`, "usage has a negative count"},
		{AfterTool, `{"usage":{"output":9223372036854775807}}`, "usage has a count above 1000000000000"},
		{BeforeCompaction, `{"compaction":{"summary":"s","usage":{"input":1,"cost":{"total":-5}}}}`, "usage has a negative cost"},
		{BeforeRequest, `{"streamOptions":{"maxTokens":1e30}}`, "streamOptions.maxTokens is number 1e30, want a whole number"},
		{BeforeRequest, `{"streamOptions":{"temperature":"hot"}}`, "streamOptions.temperature is string, want a number"},
		{AfterTool, `{"usage":{"input":"x"}}`, `decode usage: "input" is not a number: "x"`},
		{BeforeCompaction, `{"summary":{}}`, `its answer has the unknown field "summary"; the fields are: decline, compaction`},
		{BeforeCompaction, `{"compaction":{"summary":" "}}`, "compaction.summary is missing"},
		{BeforeNavigation, `{"decline":true,"summary":{"summary":"x"}}`, "it declines and gives a summary at once"},
	} {
		for _, c := range calls() {
			if c.point != tt.point {
				continue
			}
			_, err := c.do(t.Context(), newWorld(t).hooks(c.point, tt.answer))
			if err == nil || !strings.HasPrefix(err.Error(), "mine: ") || !strings.HasSuffix(err.Error(), tt.why) {
				t.Errorf("%s %s:\n got %v\nwant %s", tt.point, tt.answer, err, tt.why)
			}
			if _, required := errors.AsType[*engine.Required](err); required {
				t.Errorf("%s %s: it counts as required", tt.point, tt.answer)
			}
		}
	}
}

// failing runs before_run_end programs, whose failure is returned.
func failing(ctx context.Context, h engine.Hooks) (string, error) {
	return h.BeforeRunEnd[0](ctx, engine.BeforeRunEnd{Lane: "main", RunID: "o1"})
}

func TestProgramsFail(t *testing.T) {
	for _, tt := range []struct {
		name    string
		program Program
		why     string
	}{
		{"exit code", Program{Argv: []string{"sh", "-c", "echo '{\"followUp\":\"x\"}'; echo one >&2; echo two >&2; exit 3"}}, "exit code 3: one two"},
		{"stderr alone is none", Program{Argv: []string{"sh", "-c", "echo one >&2"}}, ""},
		{"signal", Program{Argv: []string{"sh", "-c", "kill -9 $$"}}, "ended by signal 9 (killed)"},
		{"time", Program{Argv: []string{"sleep", "600"}, Timeout: 20 * time.Millisecond}, "it took longer than 20ms"},
		{"absent", Program{Argv: []string{"/no/such/program"}}, "stat /no/such/program: no such file or directory"},
		{"no folder", Program{Argv: []string{"true"}, Dir: "/no/such/folder"}, "no such file or directory"},
		{"endless answer", Program{Argv: []string{"cat", "/dev/zero"}}, "its answer is longer than 64 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, required := range []bool{false, true} {
				tt.program.Point, tt.program.Required = BeforeRunEnd, required
				_, err := failing(t.Context(), newWorld(t).running(tt.program))
				if tt.why == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				if err == nil || !strings.HasPrefix(err.Error(), "mine: ") || !strings.HasSuffix(err.Error(), tt.why) {
					t.Errorf("got %v\nwant %s", err, tt.why)
				}
				if _, ok := errors.AsType[*engine.Required](err); ok != required {
					t.Errorf("required %t: %T", required, err)
				}
			}
		})
	}
}

// A session without a folder refuses a program that has none of its own.
func TestFolder(t *testing.T) {
	p := Program{Name: "mine", Point: BeforeRunEnd, Argv: []string{"sh", "-c", `printf '{"followUp":"%s"}' "$PWD"`}, Timeout: time.Minute}
	if _, err := failing(t.Context(), Hooks([]Program{p}, Options{})); err == nil || !strings.Contains(err.Error(), "it has none") {
		t.Errorf("got %v", err)
	}
	p.Dir = t.TempDir()
	if got, err := failing(t.Context(), Hooks([]Program{p}, Options{})); err != nil || got != p.Dir {
		t.Errorf("got %s, %v", got, err)
	}
}

// An abort lets a program come to its end, anything else does not (spec §4.6).
func TestEndOfContext(t *testing.T) {
	p := Program{Point: BeforeRunEnd, Argv: []string{"echo", `{"followUp":"x"}`}}
	for _, tt := range []struct {
		cause error
		want  string
	}{{&effect.AbortRequested{}, "x"}, {errors.New("closed"), ""}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tt.cause)
		got, err := failing(ctx, newWorld(t).running(p))
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%v: got %q, %v", tt.cause, got, err)
		}
	}
}

// A program that hangs is ended soon after an abort, and one that has ended is not
// waited for.
func TestAbortPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, abort := context.WithCancelCause(t.Context())
		hung, _ := lifetime(parent)
		ended, end := lifetime(parent)
		abort(&effect.AbortRequested{})
		time.Sleep(abortPatience - 1)
		synctest.Wait()
		end(nil)
		if hung.Err() != nil {
			t.Error("an abort ends a program at once")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if context.Cause(hung) != errAborted || context.Cause(ended) != context.Canceled {
			t.Errorf("got %v and %v", context.Cause(hung), context.Cause(ended))
		}
	})
}

// What a program finds in its environment: no keys but those that it is given.
func TestEnvironment(t *testing.T) {
	t.Setenv("HOOKTEST_KEY_A", "secret")
	t.Setenv("HOOKTEST_KEY_B", "passed")
	t.Setenv("HOOKTEST_C", "seen")
	p := Program{
		Point: BeforeRunEnd, Env: []string{"HOOKTEST_C=own", "HOOKTEST_D=more"}, Pass: []string{"HOOKTEST_KEY_B"},
		Argv: []string{"sh", "-c", `printf '{"followUp":"%s"}' "$(env | grep -E '^(HOOKTEST|DROVER)_' | sort | tr '\n' ' ')"`},
	}
	got, err := failing(t.Context(), newWorld(t).running(p))
	want := "DROVER_HOOK=before_run_end DROVER_LANE=main DROVER_OPERATION_ID=o1 DROVER_SESSION_ID=s1 HOOKTEST_C=own HOOKTEST_D=more HOOKTEST_KEY_B=passed "
	if err != nil || got != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

// Programs of a point keep their order, and are asked about their tools alone.
func TestOrderAndTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	block := func(name string, tools ...string) Program {
		return Program{Name: name, Point: BeforeTool, Tools: tools, Argv: []string{"echo", `{"block":{"reason":"` + name + `"}}`}}
	}
	h := w.running(block("z", "write"), block("a", "bash", "write"), block("m"))
	var got []string
	for _, name := range []string{"bash", "write", "read"} {
		for _, hook := range h.BeforeTool {
			d, err := hook(t.Context(), engine.BeforeTool{Name: name, Args: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, name+":"+d.Block)
		}
	}
	want := []string{"bash:", "bash:a", "bash:m", "write:z", "write:a", "write:m", "read:", "read:", "read:m"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGuarded(t *testing.T) {
	after := func(required bool, tools ...string) Program {
		return Program{Point: AfterTool, Required: required, Tools: tools}
	}
	for _, tt := range []struct {
		programs []Program
		want     bool
	}{
		{nil, false},
		{[]Program{after(false)}, false},
		{[]Program{after(true)}, true},
		{[]Program{after(true, "read")}, false},
		{[]Program{after(false), after(true, "bash")}, true},
		{[]Program{{Point: BeforeTool, Required: true}}, false},
	} {
		if got := Hooks(tt.programs, Options{}).Guarded("bash"); got != tt.want {
			t.Errorf("%+v: %t", tt.programs, got)
		}
	}
}
