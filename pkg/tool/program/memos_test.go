package program

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// memo is a shell function that asks this test binary.
func memo(t *testing.T) string {
	t.Helper()
	t.Setenv(memoEnv, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return "memo() { '" + self + "' \"$@\"; }\n"
}

func TestMemos(t *testing.T) {
	w := newWorld(t)
	fn := memo(t)
	got := w.call(t, shell(fn+`memo step || echo "absent $?"; memo step '{"n":1.0,"s":"<\ud83d>"}'; memo step; memo null null; memo null`), `{}`)
	want := outcome{Text: "absent 4\n{\"n\":1.0,\"s\":\"<\\ud83d>\"}\nnull\n", Details: fine}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// The next call of the same invocation finds them.
	if got := w.call(t, shell(fn+"memo step"), `{}`); got.Text != `{"n":1.0,"s":"<\ud83d>"}`+"\n" {
		t.Errorf("%+v", got)
	}
	if got := w.call(t, shell(fn+"memo a:b 1"), `{}`); got.Text != "memo name \"a:b\" is empty or has a colon\n[Exit code 1.]" {
		t.Errorf("%+v", got)
	}
	if got := w.call(t, shell(fn+"DROVER_TOOL_TOKEN=0 memo step"), `{}`); got.Text != "the token is not that of this call\n[Exit code 1.]" {
		t.Errorf("%+v", got)
	}
	if got := w.call(t, shell(fn+`ls -ld ${DROVER_TOOL_SOCKET%/*} | cut -c1-10; ls -l $DROVER_TOOL_SOCKET | cut -c1-10`), `{}`); got.Text != "drwx------\nsrw-------\n" {
		t.Errorf("%+v", got)
	}
}

// A memo may still be saved by a program that is asked to end, and nobody finds
// the socket of a call that has.
func TestMemosAtTheEnd(t *testing.T) {
	w := newWorld(t)
	folder, _ := w.options.Sockets()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := serveMemos(ctx, folder, w.memos)
	if err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{EnvSocket: s.path, EnvToken: s.token}[name] }
	cancel()
	if err := SetMemo(t.Context(), env, "step", []byte("7")); err != nil || w.memos.kept["step"] != "7" {
		t.Errorf("kept %v: %v", w.memos.kept, err)
	}
	s.close()
	if _, _, err := GetMemo(t.Context(), env, "step"); !errors.Is(err, ErrNoCall) {
		t.Errorf("got %v", err)
	}
	if _, _, err := GetMemo(t.Context(), func(string) string { return "" }, "step"); !errors.Is(err, ErrNoCall) {
		t.Error(err)
	}
}

// The end of a call does not wait for who has connected and asks nothing.
func TestMemosIdleClient(t *testing.T) {
	w := newWorld(t)
	folder, _ := w.options.Sockets()
	s, err := serveMemos(t.Context(), folder, w.memos)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.close()
	if left, err := io.ReadAll(conn); len(left) > 0 && !strings.Contains(string(left), "error") {
		t.Errorf("got %q, %v", left, err)
	}
}

func TestSocketFolder(t *testing.T) {
	w := newWorld(t)
	long := t.TempDir() + "/" + strings.Repeat("x", 100)
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	w.options.Sockets = func() (string, error) { return long, nil }
	if got := w.call(t, shell("true"), `{}`); got.Err != "serve memos: "+long+" has a name too long for a socket" {
		t.Errorf("%+v", got)
	}
	gone := errors.New("no folder")
	w.options.Sockets = func() (string, error) { return "", gone }
	if got := w.call(t, shell("true"), `{}`); got.Err != "serve memos: no folder" {
		t.Errorf("%+v", got)
	}
}
