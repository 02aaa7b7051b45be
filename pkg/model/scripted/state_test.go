package scripted_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/scripted"
)

// askScript makes the test binary a process that asks a script once and prints
// the answer's text.
const askScript = "DROVER_TEST_ASK_SCRIPT"

func TestMain(m *testing.M) {
	path := os.Getenv(askScript)
	if path == "" {
		os.Exit(m.Run())
	}
	model, err := scripted.New(scripted.Options{}).Resolve(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for ev := range model.Stream(context.Background(), effect.Request{}) {
		if ev.Type == message.EventDone {
			fmt.Print(ev.Message.Text())
		}
	}
}

// numbered returns a script of n responses whose texts are their numbers.
func numbered(n int) string {
	s := "responses:\n"
	for i := range n {
		s += fmt.Sprintf("  - {text: \"%d\"}\n", i+1)
	}
	return s
}

func state(text string, next int) string {
	return fmt.Sprintf("{\"digest\":\"%x\",\"next\":%d}\n", sha256.Sum256([]byte(text)), next)
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// files lists a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPosition(t *testing.T) {
	script := numbered(3)
	path := write(t, "s.yaml", script)
	m := resolve(t, path)
	wantFile(t, path+".state", state(script, 0))

	// A request moves the position when it starts, not when Stream is called.
	unstarted := m.Stream(t.Context(), request())
	wantFile(t, path+".state", state(script, 0))
	for range unstarted {
		wantFile(t, path+".state", state(script, 1))
		break
	}

	// Another provider goes on from there.
	if diff := cmp.Diff([]string{"2", "3"}, texts(t, path, 2)); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		want := []string{`error error [] error in=0 out=0 total=0 "script ` + path + ` has no response 4" ` +
			string(message.AppendProviderError(nil, message.ErrorInfo{Class: message.ClassInvalidRequest}))}
		if diff := cmp.Diff(want, lines(t, ask(t.Context(), resolve(t, path), request()))); diff != "" {
			t.Error(diff)
		}
	}
	wantFile(t, path+".state", state(script, 3))
	if diff := cmp.Diff([]string{"s.yaml", "s.yaml.state"}, files(t, filepath.Dir(path))); diff != "" {
		t.Error(diff)
	}
}

func TestAnotherScriptStartsOver(t *testing.T) {
	path := write(t, "s.yaml", numbered(3))
	texts(t, path, 2)
	before := resolve(t, path)
	rewrite(t, path, numbered(2))
	if diff := cmp.Diff([]string{"1", "2"}, texts(t, path, 2)); diff != "" {
		t.Error(diff)
	}
	// A model keeps the script that it was resolved with.
	if got := last(ask(t.Context(), before, request())).Text(); got != "1" {
		t.Errorf("text = %q, want 1", got)
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	path := write(t, "s.yaml", numbered(1))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	got := lines(t, ask(cancelled, resolve(t, path), request()))
	want := []string{`error aborted [] aborted in=0 out=0 total=0 "the request was aborted"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantFile(t, path+".state", state(numbered(1), 0))
}

func TestStateDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p := scripted.New(scripted.Options{StateDir: dir})
	one, two := write(t, "s.yaml", numbered(2)), write(t, "s.yaml", numbered(3))
	var got []string
	for _, path := range []string{one, two, one, two} {
		m, err := p.Resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, last(ask(t.Context(), m, request())).Text())
	}
	if diff := cmp.Diff([]string{"1", "1", "2", "2"}, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range files(t, dir) {
		if !strings.HasPrefix(name, "s.yaml-") || !strings.HasSuffix(name, ".state") {
			t.Errorf("unexpected file %s", name)
		}
	}
	if diff := cmp.Diff([]string{"s.yaml"}, files(t, filepath.Dir(one))); diff != "" {
		t.Error(diff)
	}
}

func TestPositionFailures(t *testing.T) {
	script := numbered(1)
	tests := []struct {
		name    string
		prepare func(t *testing.T, path string) (stateDir string)
		want    error // nil: any
	}{
		{"state is a folder", func(t *testing.T, path string) string {
			if err := os.Mkdir(path+".state", 0o700); err != nil {
				t.Fatal(err)
			}
			return ""
		}, syscall.EISDIR},
		{"state folder is a file", func(_ *testing.T, path string) string { return path }, syscall.ENOTDIR},
		{"state folder below a file", func(_ *testing.T, path string) string { return filepath.Join(path, "x") }, syscall.ENOTDIR},
		{"lock is a folder", func(t *testing.T, path string) string {
			if err := os.Mkdir(path+".state.lock", 0o700); err != nil {
				t.Fatal(err)
			}
			return ""
		}, syscall.EISDIR},
		{"folder not writable", func(t *testing.T, path string) string {
			if os.Geteuid() == 0 {
				t.Skip("root writes everywhere")
			}
			if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
				t.Fatal(err)
			}
			return ""
		}, os.ErrPermission},
		{"state is no JSON", func(t *testing.T, path string) string {
			rewrite(t, path+".state", "{")
			return ""
		}, nil},
		{"state before the first response", func(t *testing.T, path string) string {
			rewrite(t, path+".state", state(script, -1))
			return ""
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "s.yaml", script)
			_, err := scripted.New(scripted.Options{StateDir: tt.prepare(t, path)}).Resolve(path)
			_, unknown := errors.AsType[*effect.UnknownModel](err)
			_, broken := errors.AsType[*scripted.ScriptError](err)
			if err == nil || unknown || broken || (tt.want != nil && !errors.Is(err, tt.want)) {
				t.Fatalf("Resolve: %v", err)
			}
			if want := "keep position of script " + path + ": "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error = %q, want %q...", err, want)
			}
		})
	}
}

// TestPositionFailsLater: what can only be told in the answer is told there.
func TestPositionFailsLater(t *testing.T) {
	path := write(t, "s.yaml", numbered(1))
	m := resolve(t, path)
	rewrite(t, path+".state", "{")
	got := last(ask(t.Context(), m, request()))
	if text := got.ErrorMessage(); !strings.HasPrefix(text, "keep position of script "+path) || message.IsRetryable(got) {
		t.Errorf("answer %s", got)
	}
}

func TestRacingProviders(t *testing.T) {
	const n = 24
	path := write(t, "s.yaml", numbered(n))
	got := make([]string, n)
	var group sync.WaitGroup
	for i := range n {
		m := resolve(t, path)
		group.Go(func() { got[i] = last(ask(t.Context(), m, request())).Text() })
	}
	group.Wait()
	wantEachOnce(t, got)
}

func TestRacingProcesses(t *testing.T) {
	const n = 6
	path := write(t, "s.yaml", numbered(n))
	got := make([]string, n)
	commands := make([]*exec.Cmd, n)
	out := make([]bytes.Buffer, n)
	for i := range n {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), askScript+"="+path)
		c.Stdout, c.Stderr = &out[i], os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		commands[i] = c
	}
	for i, c := range commands {
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, &out[i])
		}
		got[i] = out[i].String()
	}
	wantEachOnce(t, got)
}

func wantEachOnce(t *testing.T, got []string) {
	t.Helper()
	var want []string
	for i := range got {
		want = append(want, fmt.Sprint(i+1))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
