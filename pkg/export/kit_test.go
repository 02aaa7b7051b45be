package export_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/v3import"
)

// imported reads a legacy file as a session.
func imported(t testing.TB, legacy []byte) store.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "legacy.jsonl")
	if err := os.WriteFile(path, legacy, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := v3import.Read(t.Context(), path, v3import.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	out := filepath.Join(t.TempDir(), "session.jsonl")
	if err := (jsonl.Driver{}).Build(t.Context(), out, s.Snapshot(), store.BuildOptions{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	r, err := jsonl.Driver{}.View(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// session is what a test builds entry by entry.
type session struct {
	records []store.Record
}

func (s *session) record(r store.Record) *session {
	r.Seq = int64(len(s.records)) + 1
	if r.Entry != nil {
		r.Entry.Seq = r.Seq
		r.Entry.Timestamp = 1_700_000_000_000 + r.Seq*1000
	}
	s.records = append(s.records, r)
	return s
}

// entry adds an entry below another, "" for a root.
func (s *session) entry(id, parent string, typ store.EntryType, customType, payload string) *session {
	return s.record(store.Record{Kind: store.KindEntry, Entry: &store.Entry{
		Structure: store.Structure{ID: id, ParentID: parent, Type: typ, CustomType: customType}, Payload: []byte(payload),
	}})
}

func (s *session) message(id, parent, m string) *session {
	return s.entry(id, parent, store.TypeMessage, "", `{"message":`+m+`}`)
}

func (s *session) user(id, parent, text string) *session { return s.message(id, parent, user(text)) }

func (s *session) compaction(id, parent, tail string) *session {
	return s.entry(id, parent, store.TypeCompaction, "", `{"summary":"so far","retainedTail":[`+tail+`],"tokensBefore":9,"fromHook":false}`)
}

func user(text string) string {
	return `{"role":"user","content":` + string(rawjson.Quote(text)) + `,"timestamp":1}`
}

func (s *session) set(w store.Write) *session {
	return s.record(store.Record{Kind: w.Kind, Op: w.Op, Address: w.Address, Value: w.Value})
}

func (s *session) lane(name, leaf string) *session {
	return s.set(store.LaneLeaf(name).Set(store.LeafID(leaf))).set(store.LaneStateOf(name).Set(store.LaneState{PendingNextRun: []string{}}))
}

// reader opens what was built.
func (s *session) reader(t testing.TB) store.Reader {
	t.Helper()
	d := &memory.Driver{}
	snap := store.NewSnapshot(store.Header{ID: "session-1", StorageVersion: store.StorageVersion, CreatedAt: 1_700_000_000_000, CWD: "/work"}, s.records)
	if err := d.Build(t.Context(), "s", snap, store.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := d.View(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func open(t testing.TB, r store.Reader, o export.Options) *export.Source {
	t.Helper()
	s, err := export.Open(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func piV3(t testing.TB, r store.Reader, o export.Options) ([]byte, export.Report) {
	t.Helper()
	var out bytes.Buffer
	report, err := open(t, r, o).PiV3(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), report
}

// conversation is what a request from a lane would send, without what counts
// the time or names entries.
func conversation(t testing.TB, r store.Reader, lane string) []string {
	t.Helper()
	leaf, ok, err := store.Get(t.Context(), r, store.LaneLeaf(lane))
	if err != nil || !ok {
		t.Fatalf("lane %s: %v", lane, err)
	}
	messages, err := engine.Context(t.Context(), r, leaf.Value, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range message.ToProvider(messages) {
		without, err := rawjson.Delete(m, "timestamp")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(without))
	}
	return out
}
