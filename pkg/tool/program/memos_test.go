package program

import (
	"errors"
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
	c := shell(memo(t) + `trap 'memo step 7; exit' TERM; echo $DROVER_TOOL_SOCKET $DROVER_TOOL_TOKEN; sleep 90 & wait`)
	c.Timeout = 1
	c.Timeout <<= 29 // half a second
	got := w.call(t, c, `{}`)
	if w.memos.kept["step"] != "7" {
		t.Errorf("kept %v: %+v", w.memos.kept, got)
	}
	line, _, _ := strings.Cut(got.Text, "\n")
	path, token, _ := strings.Cut(line, " ")
	env := map[string]string{EnvSocket: path, EnvToken: token}
	_, _, err := GetMemo(t.Context(), func(name string) string { return env[name] }, "step")
	if !errors.Is(err, ErrNoCall) {
		t.Errorf("got %v of %q", err, line)
	}
	if _, _, err := GetMemo(t.Context(), func(string) string { return "" }, "step"); !errors.Is(err, ErrNoCall) {
		t.Error(err)
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
