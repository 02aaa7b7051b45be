package jsonl_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(child(mode, os.Getenv(childPath)))
	}
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Driver, string) { return jsonl.Driver{}, t.TempDir() })
}

// headerLine is the first line of every file that a test writes by hand.
const headerLine = `{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":1700000000000}` + "\n"

const now = int64(1_700_000_000_000)

func options() store.OpenOptions { return store.OpenOptions{Now: func() int64 { return now }} }

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func user(id, parent, text string) store.Write {
	return store.InsertEntry(store.MessageEntry(id, parent, message.Message(`{"role":"user","content":"`+text+`","timestamp":1}`)))
}

// file writes a session file by hand and returns its path.
func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fresh builds an empty session and returns its path.
func fresh(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	h := store.Header{ID: "s", StorageVersion: store.StorageVersion, CreatedAt: now}
	if err := (jsonl.Driver{}).Build(t.Context(), path, store.NewSnapshot(h, nil), store.BuildOptions{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	return path
}

func openWith(t testing.TB, d jsonl.Driver, path string, o store.OpenOptions) store.Backend {
	t.Helper()
	b, err := d.Open(t.Context(), path, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func open(t testing.TB, path string) store.Backend {
	t.Helper()
	return openWith(t, jsonl.Driver{}, path, options())
}

func view(t testing.TB, path string) store.Reader {
	t.Helper()
	r, err := jsonl.Driver{}.View(t.Context(), path)
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func commit(t testing.TB, b store.Backend, tx ...store.Write) store.CommitResult {
	t.Helper()
	res, err := b.Commit(t.Context(), tx)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return res
}

func closeStore(t testing.TB, r store.Reader) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func records(t testing.TB, q store.Queries) []store.Record {
	t.Helper()
	snap, err := q.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// soundLines checks that every line of a file is JSON and returns how many there
// are.
func soundLines(t testing.TB, path string) int {
	t.Helper()
	content := read(t, path)
	if len(content) == 0 || content[len(content)-1] != '\n' {
		t.Errorf("the file does not end with a newline: …%q", content[max(0, len(content)-40):])
	}
	lines := bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
	for i, l := range lines {
		if !json.Valid(l) {
			t.Errorf("line %d is not JSON: %.200q", i+1, l)
		}
	}
	return len(lines)
}
