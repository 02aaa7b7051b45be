package search_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/search"
	"github.com/drover-run/drover/pkg/store"
)

const secret = "xylophonesecretmarker"

// wantBytes checks by an independent look whether the index files hold a text.
func (w *world) wantBytes(text string, want bool) {
	w.t.Helper()
	paths, err := filepath.Glob(w.path + "*")
	if err != nil {
		w.t.Fatal(err)
	}
	found := false
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			w.t.Fatal(err)
		}
		found = found || bytes.Contains(bytes.ToLower(b), []byte(text))
	}
	if found != want {
		w.t.Errorf("%q in the bytes of the index: %v, want %v", text, found, want)
	}
}

func TestPurgeLeavesNoByte(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "jsonl", "harmless one", "harmless two")
	for range 40 { // segments to merge
		w.create("bbbbbb", "sqlite", "mine "+secret, "nothing")
		w.sync()
		w.wantBytes(secret, true)
		if err := w.repo.Delete(t.Context(), store.Ref{ID: "bbbbbb", Path: filepath.Join(w.repo.Dir(), "bbbbbb.db"), Backend: "sqlite"}); err != nil {
			t.Fatal(err)
		}
	}
	h, err := w.x.Holds(t.Context(), secret)
	if err != nil || !cmp.Equal(h.Sessions, []string{"bbbbbb"}) || len(h.Files) == 0 {
		t.Errorf("before: %+v, %v", h, err)
	}
	if err := w.x.Purge(t.Context(), "bbbbbb"); err != nil {
		t.Fatal(err)
	}
	w.wantBytes(secret, false)
	if h, err := w.x.Holds(t.Context(), secret); err != nil || !cmp.Equal(h, search.Holding{}) {
		t.Errorf("after: %+v, %v", h, err)
	}
	w.want("harmless", "aaaaaa:harmless one", "aaaaaa:harmless two")
	if err := w.x.Purge(t.Context(), "bbbbbb"); err != nil {
		t.Errorf("a second purge: %v", err)
	}
}

func TestRemovedSessionsLeaveBytesThatHoldsFinds(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "jsonl", "mine "+secret)
	w.sync()
	if err := w.x.Remove(t.Context(), "aaaaaa"); err != nil {
		t.Fatal(err)
	}
	w.want(secret)
	if h, err := w.x.Holds(t.Context(), secret); err != nil || len(h.Sessions) > 0 || len(h.Files) == 0 {
		t.Errorf("after a mere removal: %+v, %v", h, err)
	}
	if err := w.x.Purge(t.Context(), "aaaaaa"); err != nil {
		t.Fatal(err)
	}
	w.wantBytes(secret, false)
	w.sync()
	w.want(secret, "aaaaaa:mine "+secret) // the session itself is still there
}

func TestPurgeBesideAReaderIsNotProven(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "jsonl", "mine "+secret)
	w.sync()
	other := openIndex(t, w.path)
	end, err := other.HoldMoment()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.x.Purge(t.Context(), "aaaaaa"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("beside a reader: %v", err)
	}
	end()
	if err := w.x.Purge(t.Context(), "aaaaaa"); err != nil {
		t.Fatal(err)
	}
	w.wantBytes(secret, false)
}

func TestDamagedIndexIsMadeAnew(t *testing.T) {
	damages := map[string]func(text []byte) []byte{
		"no database":  func([]byte) []byte { return []byte("something else altogether, of some length, that is no database") },
		"cut":          func(text []byte) []byte { return text[:len(text)/2] },
		"zeroed pages": func(text []byte) []byte { return append(text[:4096:4096], make([]byte, len(text)-4096)...) },
		"noise":        func(text []byte) []byte { return append(text[:100:100], bytes.Repeat([]byte{0xA5}, len(text)-100)...) },
		"other schema": func(text []byte) []byte { text[63] = 9; return text }, // user_version
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("aaaaaa", "jsonl", "alpha", "beta")
			w.sync()
			path := filepath.Join(t.TempDir(), "copy.db")
			if err := w.x.Purge(t.Context(), "nobody"); err != nil { // all is in the file itself
				t.Fatal(err)
			}
			text, err := os.ReadFile(w.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(text), 0o600); err != nil {
				t.Fatal(err)
			}
			x, err := search.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			told := x.Discarded() != nil
			_, err = x.Sync(t.Context(), w.repo, search.SyncOptions{})
			if err == nil {
				_, err = x.Entries(t.Context(), search.Query{Text: "alpha"})
			}
			if err := x.Close(); err != nil && !told {
				t.Logf("close: %v", err)
			}
			if err != nil {
				if _, ok := errors.AsType[*store.Corrupt](err); !ok {
					t.Fatalf("damage is told as %v", err)
				}
				told = true
				if err := search.Discard(t.Context(), path); err != nil {
					t.Fatal(err)
				}
			}
			if !told {
				t.Error("nobody was told")
			}
			w.x = openIndex(t, path)
			w.sync()
			w.want("alpha", "aaaaaa:alpha")
		})
	}
}

func TestCacheFolderThatIsDeletedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache", "index.db")
	x, err := search.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	openIndex(t, path)
}

// What other sessions say in capitals, and numbers that look like a short text, are
// nothing that a purge has left.
func TestHoldsTellsNoOthersBytesFromDeadOnes(t *testing.T) {
	w := newWorld(t)
	w.create("aaaaaa", "jsonl", "Mine "+strings.ToUpper(secret[:1])+secret[1:])
	w.create("bbbbbb", "sqlite", "mine "+secret)
	w.sync()
	if err := w.x.Purge(t.Context(), "bbbbbb"); err != nil {
		t.Fatal(err)
	}
	w.wantBytes(secret, true)
	if h, err := w.x.Holds(t.Context(), secret); err != nil || !cmp.Equal(h.Sessions, []string{"aaaaaa"}) {
		t.Errorf("in capitals: %+v, %v", h, err)
	}
	w.wantBytes("id", true) // a word of the schema
	if h, err := w.x.Holds(t.Context(), "id"); err != nil || !cmp.Equal(h, search.Holding{}) {
		t.Errorf("a short text: %+v, %v", h, err)
	}
}
