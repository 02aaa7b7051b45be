package jsonl_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// Mend cuts a torn tail off and removes what a replacement left, and nothing else. A
// call that fails, whichever, loses no commit, and the next attempt finishes.
func TestMendWithEveryFault(t *testing.T) {
	path := fresh(t)
	b := open(t, path)
	commit(t, b, user("e1", "", "one"), store.SessionName().Set("kept"))
	want := records(t, b)
	closeStore(t, b)
	good := read(t, path)
	torn := append(append([]byte{}, good...), `{"kind":"val`...)
	left := path[:len(path)-len("s.jsonl")] + ".s.jsonl.tmp-0a1b2c3d"

	for _, op := range []fsxtest.Op{"", fsxtest.Truncate, fsxtest.Sync, fsxtest.Remove} {
		write(t, path, torn)
		write(t, left, []byte("half"))
		var fsys fsxtest.FS
		b := openWith(t, jsonl.Driver{FS: &fsys}, path, options())
		if op != "" {
			fsys.Fail(fsxtest.Rule{Op: op, Err: syscall.EIO})
			if err := b.(store.Mender).Mend(t.Context()); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s fails: %v", op, err)
			}
			fsys.Heal()
		}
		same(t, "what can be read", records(t, b), want)
		if err := b.(store.Mender).Mend(t.Context()); err != nil {
			t.Errorf("after %q: %v", op, err)
		}
		closeStore(t, b)
		if got := read(t, path); string(got) != string(good) {
			t.Errorf("after %q the file is %q", op, got)
		}
		if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after %q the temporary file: %v", op, err)
		}
	}
}
