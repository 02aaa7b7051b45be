package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/tool"
)

// memoEnv makes this test binary ask for a memo, as `drover tool memo` does: its
// arguments are the name and, to set it, the value.
const memoEnv = "PROGRAM_TEST_MEMO"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == tool.SupervisorArg:
		os.Exit(tool.SupervisorMain(os.Args[2:]))
	case os.Getenv(memoEnv) != "" && len(os.Args) > 1:
		os.Exit(askMemo(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func askMemo(args []string) int {
	var value json.RawMessage
	found := true
	var err error
	if len(args) > 1 {
		err = SetMemo(context.Background(), os.Getenv, args[0], json.RawMessage(args[1]))
	} else if value, found, err = GetMemo(context.Background(), os.Getenv, args[0]); found {
		fmt.Println(string(value))
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if !found {
		return 4
	}
	return 0
}

// memos are kept in memory; nothing survives the test.
type memos struct {
	mu   sync.Mutex
	kept map[string]string
}

func (m *memos) Get(_ context.Context, name string) (json.RawMessage, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.kept[name]
	if !ok {
		return nil, false, nil
	}
	return json.RawMessage(v), true, nil
}

func (m *memos) Set(_ context.Context, name string, value json.RawMessage) error {
	if err := CheckMemoName(name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string]string{}
	}
	m.kept[name] = string(value)
	return nil
}

// world runs programs in a folder of its own.
type world struct {
	dir     string
	options Options
	memos   *memos
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), memos: &memos{}}
	sockets, err := os.MkdirTemp("", "s") // a test's own folder has too long a name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, _ := os.ReadDir(sockets)
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		os.RemoveAll(sockets)
	})
	w.options = Options{CWD: w.dir, TempDir: t.TempDir(), Sockets: func() (string, error) { return sockets, nil }}
	return w
}

// shell is a program tool that runs a shell script.
func shell(script string) Config {
	return Config{Name: "work", Description: "Works.", Argv: []string{"sh", "-c", script}, Schema: json.RawMessage(`{"type":"object"}`)}
}

// update is a report of progress, as a test compares it.
type update struct {
	Text, Details string
	Checkpoint    bool
}

// outcome is what a call gave.
type outcome struct {
	Text    string
	Details string
	IsError bool
	Err     string // refused, or not tried
	Updates []update
}

func (w *world) call(t *testing.T, c Config, args string) outcome {
	t.Helper()
	return w.callWith(t.Context(), c, args, func(update) {})
}

func (w *world) callWith(ctx context.Context, c Config, args string, see func(update)) outcome {
	p := New(c, w.options)
	prepared, err := p.Prepare(json.RawMessage(args))
	if err != nil {
		return outcome{Err: err.Error()}
	}
	var o outcome
	r, err := p.Execute(ctx, effect.Invocation{
		ID: "call", SessionID: "session", Lane: "main", OperationID: "operation", Args: prepared, Memos: w.memos,
		Update: func(r message.ToolResult, checkpoint bool) {
			u := update{textOf(r), string(r.Details), checkpoint}
			o.Updates = append(o.Updates, u)
			see(u)
		},
	})
	if err != nil {
		o.Err = err.Error()
	}
	o.Text, o.Details, o.IsError = textOf(r), string(r.Details), r.IsError
	return o
}

func textOf(r message.ToolResult) string {
	var b strings.Builder
	for _, block := range r.Content {
		b.WriteString(block.Text)
	}
	return b.String()
}

const fine = `{"exitCode":0,"cancelled":false,"timedOut":false,"truncated":false}`

func TestExecute(t *testing.T) {
	t.Setenv("PROGRAM_TEST_KEY", "hidden")
	t.Setenv("PROGRAM_TEST_OTHER", "hidden too")
	w := newWorld(t)
	w.options.StripEnv = func(name string) bool { return strings.HasPrefix(name, "PROGRAM_TEST_") }
	elsewhere := t.TempDir()
	code := func(n string) string { return strings.Replace(fine, "0", n, 1) }
	with := func(c Config, change func(*Config)) Config { change(&c); return c }
	cases := []struct {
		name   string
		config Config
		args   string
		want   outcome
	}{
		{"arguments on stdin", shell("read -r line; echo \"got $line\"; read -r more || echo end"), `{"a":[1.0,"\ud83d"]}`,
			outcome{Text: `got {"a":[1.0,"\ud83d"]}` + "\nend\n", Details: fine}},
		{"nothing printed", shell("cat >/dev/null"), `{}`, outcome{Text: "(no output)", Details: fine}},
		{"stderr of a success", shell("echo why >&2; echo out"), `{}`,
			outcome{Text: "out\n", Details: fine[:len(fine)-1] + `,"stderr":"why\n"}`}},
		{"exit code", shell("echo out; echo why >&2; exit 3"), `{}`,
			outcome{Text: "out\nwhy\n[Exit code 3.]", Details: code("3"), IsError: true}},
		{"folder", shell("pwd; echo $PWD"), `{}`, outcome{Text: w.dir + "\n" + w.dir + "\n", Details: fine}},
		{"configured folder", with(shell("pwd"), func(c *Config) { c.Dir = elsewhere }), `{}`, outcome{Text: elsewhere + "\n", Details: fine}},
		{"folder gone", with(shell("pwd"), func(c *Config) { c.Dir = elsewhere + "/gone" }), `{}`,
			outcome{Err: "use the program's working directory: " + elsewhere + "/gone is not there"}},
		{"told of the call", shell("echo $DROVER_SESSION_ID $DROVER_LANE $DROVER_OPERATION_ID $DROVER_TOOL_CALL_ID"), `{}`,
			outcome{Text: "session main operation call\n", Details: fine}},
		{"keys", shell("echo $PROGRAM_TEST_KEY,$PROGRAM_TEST_OTHER; env | grep -c hidden; tr '\\0' '\\n' < /proc/$PPID/environ | grep -c hidden; true"), `{}`,
			outcome{Text: ",\n0\n0\n", Details: fine}},
		{"keys passed on", with(shell("echo $PROGRAM_TEST_KEY,$PROGRAM_TEST_OTHER,$OWN"), func(c *Config) {
			c.PassEnv, c.Env = []string{"PROGRAM_TEST_OTHER"}, []string{"OWN=mine"}
		}), `{}`, outcome{Text: ",hidden too,mine\n", Details: fine}},
		{"timeout", with(shell("echo a; sleep 90 & wait"), func(c *Config) { c.Timeout = 250 * time.Millisecond }), `{}`,
			outcome{Text: "a\n[Ended after 0.25 seconds, the time limit.]", IsError: true,
				Details: `{"exitCode":null,"signal":15,"cancelled":false,"timedOut":true,"truncated":false}`}},
		{"no such program", Config{Argv: []string{w.dir + "/gone"}}, `{}`,
			outcome{Text: "[Start command: exec: \"" + w.dir + "/gone\": stat " + w.dir + "/gone: no such file or directory.]", IsError: true,
				Details: `{"exitCode":null,"cancelled":false,"timedOut":false,"truncated":false}`}},
		{"not in the PATH", with(Config{Argv: []string{"sh"}}, func(c *Config) { c.Env = []string{"PATH=" + w.dir} }), `{}`,
			outcome{Text: `[Start command: exec: "sh": executable file not found in $PATH.]`, IsError: true,
				Details: `{"exitCode":null,"cancelled":false,"timedOut":false,"truncated":false}`}},
		{"arguments that do not fit", with(shell("touch ran"), func(c *Config) { c.Schema = json.RawMessage(`{"type":"object","required":["a"]}`) }), `{}`,
			outcome{Err: `$ is an object without the required member "a"`}},
		{"no arguments", with(shell("cat"), func(c *Config) { c.Schema = nil }), `{}`, outcome{Text: "{}\n", Details: fine}},
		{"arguments where there are none", with(shell("cat"), func(c *Config) { c.Schema = nil }), `{"a":1}`,
			outcome{Err: `$.a is a number (1) under an unknown name, known are none`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, w.call(t, c.config, c.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLongOutput(t *testing.T) {
	w := newWorld(t)
	got := w.call(t, shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done"), `{}`)
	path, _ := rawjson.GetString([]byte(got.Details), "fullOutputPath")
	if base := filepath.Base(path); !strings.HasPrefix(base, "drover-work-") {
		t.Errorf("the file is called %s", base)
	}
	saved, err := os.ReadFile(path)
	if err != nil || strings.Count(string(saved), "\n") != 3000 {
		t.Errorf("saved %d bytes: %v", len(saved), err)
	}
	if n := strings.Count(got.Text, "\n"); n != 2000 || !strings.HasSuffix(got.Text, "line 2999\n[The last 2000 of 3000 lines; the full output is in "+path+".]") {
		t.Errorf("%d lines, the last %q", n, got.Text[len(got.Text)-200:])
	}
}

// What a program says on stderr is bounded, and its end is what counts.
func TestLongStderr(t *testing.T) {
	w := newWorld(t)
	got := w.call(t, shell("i=0; while [ $i -lt 9000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"), `{}`)
	if len(got.Text) > maxSaid+100 || !strings.HasPrefix(got.Text, "…\nline ") || !strings.HasSuffix(got.Text, "line 8999\n[Exit code 1.]") {
		t.Errorf("%d bytes: %.40q … %q", len(got.Text), got.Text, got.Text[len(got.Text)-40:])
	}
}

func TestAbort(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	script := `exec 9>held; (trap '' TERM; setsid sh -c 'trap "" TERM; sleep 90' & sleep 90) & echo '{"content":"ready"}' >&3; wait`
	held := openHeld(t, w.dir)
	got := w.callWith(ctx, shell(script), `{}`, func(update) { cancel() })
	want := outcome{
		Text: "[Ended because the call was aborted.]", IsError: true, Updates: []update{{Text: "ready"}},
		Details: `{"exitCode":null,"signal":15,"cancelled":true,"timedOut":false,"truncated":false}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	held()
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if got := w.callWith(ctx, shell("touch ran"), `{}`, nil); got.Err != "run program: the call was aborted before it started" {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Error("an aborted call ran")
	}
}
