package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/internal/fsx/fsxtest"
	"github.com/drover-run/drover/pkg/store"
)

// names lists a folder.
func names(t testing.TB, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}

// TestBuiltFile looks at what Build leaves: one private file in WAL mode with
// large pages, and nothing beside it.
func TestBuiltFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.db")
	e := store.Entry{Structure: store.Structure{ID: "e1", Seq: 4, Timestamp: 7, Type: store.TypeCompaction}, Payload: []byte(`{"summary":"s"}`)}
	h := header("s1")
	h.ParentSessionID, h.NextSeq = "parent", 9
	build(t, path, store.NewSnapshot(h, []store.Record{{Kind: store.KindEntry, Seq: 4, Entry: &e}}))
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"s1.db"}) {
		t.Errorf("the folder holds %v", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Bytes 16 and 18 of the header: page size, and 2 for WAL twice.
	if size := binary.BigEndian.Uint16(raw[16:]); size != 8192 || raw[18] != 2 || raw[19] != 2 {
		t.Errorf("page size %d, file format %d/%d, want 8192, 2/2", size, raw[18], raw[19])
	}
	type row struct {
		CreatedAt, Version, Messages, Next, Newest int64
		Parent, Metadata, Payload                  string
	}
	var got row
	ask(t, path, `SELECT created_at, storage_version, message_count, next_seq, newest_timestamp, parent_session_id, metadata,
		(SELECT payload FROM entries) FROM session`,
		&got.CreatedAt, &got.Version, &got.Messages, &got.Next, &got.Newest, &got.Parent, &got.Metadata, &got.Payload)
	want := row{CreatedAt: h.CreatedAt, Version: 2, Next: 9, Newest: 7, Parent: "parent", Payload: `{"summary":"s"}`,
		Metadata: `{"v":4,"kind":"header","id":"s1","storageVersion":2,"createdAt":1700000000000,"parentSessionId":"parent","generation":1}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session row (-want +got):\n%s", diff)
	}
}

// TestColumnTypes: raw JSON is stored as text, whatever it looks like.
func TestColumnTypes(t *testing.T) {
	path := newSession(t)
	b := open(t, path, store.OpenOptions{})
	v, l := store.NewValue[int]("n", "k"), store.NewList[int]("n", "l")
	commit(t, b, userEntry("e1", ""), v.Set(12), l.Append(34),
		store.InsertUsage(store.NewUsage{ID: "u1", EntryID: "e1", Details: []byte(`5`)}),
		store.InsertUsage(store.NewUsage{ID: "u2"}))
	mustClose(t, b)
	var got [8]string
	ask(t, path, `SELECT (SELECT typeof(payload) FROM entries), (SELECT typeof(parent_id) || typeof(custom_type) FROM entries),
		(SELECT typeof(value) FROM scalar_values), (SELECT typeof(value) FROM list_values),
		(SELECT typeof(usage) || typeof(details) || typeof(entry_id) FROM usage_ledger WHERE id = 'u1'),
		(SELECT typeof(usage) || typeof(details) || typeof(entry_id) FROM usage_ledger WHERE id = 'u2'),
		typeof(usage_payload), typeof(metadata) FROM session`,
		&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6], &got[7])
	want := [8]string{"text", "nullnull", "text", "text", "texttexttext", "textnullnull", "text", "text"}
	if got != want {
		t.Errorf("types %v, want %v", got, want)
	}
}

func TestBuildRefusesWhatIsThere(t *testing.T) {
	path := newSession(t)
	err := Driver{}.Build(ctx, path, store.NewSnapshot(header("other"), nil), store.BuildOptions{})
	if !errors.Is(err, store.ErrExists) {
		t.Errorf("build over a session: got %v, want ErrExists", err)
	}
	if h, err := (Driver{}).Header(ctx, path); err != nil || h.ID != "s1" {
		t.Errorf("header %v, error %v, want s1 untouched", h.ID, err)
	}
	if err := (Driver{}).Build(ctx, path, store.NewSnapshot(header("other"), nil), store.BuildOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	if h, err := (Driver{}).Header(ctx, path); err != nil || h.ID != "other" {
		t.Errorf("header %v, error %v, want other", h.ID, err)
	}
}

// TestReplaceUnderOwnership: what is replaced belongs to nobody, keeps no WAL,
// and is complete until the very end (D51).
func TestReplaceUnderOwnership(t *testing.T) {
	replace := func(d Driver, path string) error {
		return d.Build(ctx, path, store.NewSnapshot(header("new"), nil), store.BuildOptions{Replace: true})
	}
	is := func(t *testing.T, path, id string) {
		t.Helper()
		if h, err := (Driver{}).Header(ctx, path); err != nil || h.ID != id {
			t.Errorf("the file is %q, error %v, want %q", h.ID, err, id)
		}
	}
	t.Run("owned", func(t *testing.T) {
		path := newSession(t)
		b := open(t, path, store.OpenOptions{})
		var held *store.Held
		if err := replace(Driver{}, path); !errors.As(err, &held) {
			t.Errorf("replace: got %v, want *Held", err)
		}
		commit(t, b, marks.Append("x"))
		is(t, path, "s1")
	})
	t.Run("its WAL is full", func(t *testing.T) {
		path := killedSession(t)
		if err := replace(Driver{}, path); err != nil {
			t.Fatal(err)
		}
		is(t, path, "new")
		b := open(t, path, store.OpenOptions{})
		if got := readMarks(t, b); len(got) > 0 {
			t.Errorf("the new session holds %v of the old one", got)
		}
		if b.claim.fence != 3 { // after the killed owner's and the replacing one's
			t.Errorf("fence %d, want 3: it rises with every owner", b.claim.fence)
		}
	})
	t.Run("readers hold its WAL", func(t *testing.T) {
		path := killedSession(t)
		r, err := openReader(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := replace(Driver{}, path); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("replace: got %v, want EBUSY", err)
		}
		mustClose(t, r)
		is(t, path, "s1")
		if got := readMarks(t, open(t, path, store.OpenOptions{})); !slices.Equal(got, []string{"0"}) {
			t.Errorf("the old session holds %v, want what its owner committed", got)
		}
	})
	t.Run("damaged", func(t *testing.T) {
		path := newSession(t)
		damage(t, path, 0, make([]byte, 8192))
		if err := os.WriteFile(walPath(path), []byte("of the damaged file"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := replace(Driver{}, path); err != nil {
			t.Fatal(err)
		}
		is(t, path, "new")
	})
	t.Run("through a link", func(t *testing.T) {
		path := newSession(t)
		link := filepath.Join(t.TempDir(), "link.db")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		if err := replace(Driver{}, link); err != nil {
			t.Fatal(err)
		}
		is(t, path, "new")
		is(t, link, "new")
		if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link is no link any more: %v, %v", info, err)
		}
	})
	for _, op := range []fsxtest.Op{fsxtest.Rename, fsxtest.SyncDir, fsxtest.Remove} {
		t.Run("failing "+string(op), func(t *testing.T) {
			path := killedSession(t)
			system := &fsxtest.FS{}
			system.Fail(fsxtest.Rule{Op: op, Err: syscall.EIO})
			if err := replace(Driver{system: system}, path); !errors.Is(err, syscall.EIO) {
				t.Errorf("replace: got %v, want EIO", err)
			}
			is(t, path, "s1")
			if got := readMarks(t, open(t, path, store.OpenOptions{})); !slices.Equal(got, []string{"0"}) {
				t.Errorf("the old session holds %v, want what its owner committed", got)
			}
		})
	}
}

// TestBuildBesideAnOldWAL: SQLite would replay a deleted session's WAL into the
// new database.
func TestBuildBesideAnOldWAL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.db")
	if err := os.WriteFile(walPath(path), []byte("commits of another database"), 0o600); err != nil {
		t.Fatal(err)
	}
	var bad *store.Corrupt
	err := Driver{}.Build(ctx, path, store.NewSnapshot(header("s1"), nil), store.BuildOptions{})
	if !errors.As(err, &bad) || bad.Path != walPath(path) {
		t.Errorf("build: got %v, want *Corrupt naming the WAL", err)
	}
	if err := os.Truncate(walPath(path), 0); err != nil {
		t.Fatal(err)
	}
	build(t, path, store.NewSnapshot(header("s1"), nil))
	open(t, path, store.OpenOptions{})
}

// TestBuildLeavesNothing: whatever fails, the folder is as it was.
func TestBuildLeavesNothing(t *testing.T) {
	good := store.NewSnapshot(header("s1"), nil)
	entry := func(id, parent string, seq int64) store.Record {
		e := userEntry(id, parent).Entry
		return store.Record{Kind: store.KindEntry, Seq: seq, Entry: &store.Entry{
			Structure: store.Structure{ID: id, ParentID: parent, Seq: seq, Type: e.Type}, Payload: e.Payload}}
	}
	broken := errors.New("broken source")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	cases := map[string]struct {
		ctx  context.Context
		rule fsxtest.Rule
		snap *store.Snapshot
		want error
	}{
		"a source that fails": {snap: &store.Snapshot{Header: header("s1"), Records: func(yield func(store.Record, error) bool) {
			if yield(entry("a", "", 1), nil) {
				yield(store.Record{}, broken)
			}
		}}, want: broken},
		"a cancelled context": {ctx: canceled, snap: store.NewSnapshot(header("s1"), []store.Record{entry("a", "", 1)}), want: context.Canceled},
		"fsync":               {rule: fsxtest.Rule{Op: fsxtest.Sync, Err: syscall.EIO}, snap: good, want: syscall.EIO},
		"rename":              {rule: fsxtest.Rule{Op: fsxtest.Rename, Err: syscall.ENOSPC}, snap: good, want: syscall.ENOSPC},
		"fsync of the folder": {rule: fsxtest.Rule{Op: fsxtest.SyncDir, Err: syscall.EIO}, snap: good, want: syscall.EIO},
		"a name taken late":   {rule: fsxtest.Rule{Op: fsxtest.Rename, Err: fs.ErrExist}, snap: good, want: store.ErrExists},
		"a missing parent":    {snap: store.NewSnapshot(header("s1"), []store.Record{entry("a", "x", 1)}), want: nil},
		"a younger parent":    {snap: store.NewSnapshot(header("s1"), []store.Record{entry("a", "b", 1), entry("b", "", 2)}), want: nil},
		"an id that is taken": {snap: store.NewSnapshot(header("s1"), []store.Record{entry("a", "", 1), entry("a", "", 2)}), want: nil},
	}
	scratch := &Scratch{}
	defer func() { mustClose(t, scratch) }()
	for _, d := range []Driver{{}, {Scratch: scratch}} {
		for name, c := range cases {
			if d.Scratch != nil {
				name += ", in memory"
			}
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				system := &fsxtest.FS{}
				if c.rule.Op != "" {
					system.Fail(c.rule)
				}
				if c.ctx == nil {
					c.ctx = ctx
				}
				d.system, c.snap.Size = system, 1
				err := d.Build(c.ctx, filepath.Join(dir, "s1.db"), c.snap, store.BuildOptions{})
				var bad *store.Corrupt
				if c.want == nil && !errors.As(err, &bad) {
					t.Errorf("build: got %v, want *Corrupt", err)
				}
				if c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("build: got %v, want %v", err, c.want)
				}
				if got := names(t, dir); len(got) > 0 {
					t.Errorf("the folder holds %v", got)
				}
			})
		}
	}
	t.Run("the folder is missing", func(t *testing.T) {
		err := Driver{}.Build(ctx, filepath.Join(t.TempDir(), "none", "s1.db"), good, store.BuildOptions{})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("build: got %v, want fs.ErrNotExist", err)
		}
	})
}

// TestList finds sessions by name only: temporary files, side files, backups,
// folders and pipes are none, and links what they lead to.
func TestList(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"b.db", "a.db", "a.db-wal", "a.db-shm", "a.db.bak", ".a.db.tmp-1", ".db", "x.jsonl"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(
		os.Mkdir(at("c.db"), 0o700), syscall.Mkfifo(at("pipe.db"), 0o600), os.Symlink("b.db", at("link.db")),
		os.Symlink("c.db", at("folderlink.db")), os.Symlink("nowhere", at("dangling.db")), os.Symlink("loop.db", at("loop.db")),
	); err != nil {
		t.Fatal(err)
	}
	got, err := Driver{}.List(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{at("a.db"), at("b.db"), at("link.db"), at("loop.db")}; !slices.Equal(got, want) {
		t.Errorf("list: %v, want %v", got, want)
	}
}

// TestPaths opens sessions whose names mean something in a URI.
func TestPaths(t *testing.T) {
	for _, name := range []string{"with space", "q?mode=memory", "h#ash", "p%41", "a&b=c", "ünïcode 会話", "semi;colon", "plus+", "'quote\"", "back\\slash", "\xff\xfe"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d "+name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name+".db")
			build(t, path, store.NewSnapshot(header("s1"), nil))
			b := open(t, path, store.OpenOptions{})
			commit(t, b, marks.Append("x"))
			r, err := openReader(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := readMarks(t, r); !slices.Equal(got, []string{"x"}) {
				t.Errorf("marks %v", got)
			}
			mustClose(t, r)
			mustClose(t, b)
			if got := names(t, dir); !slices.Equal(got, []string{name + ".db"}) {
				t.Errorf("the folder holds %q", got)
			}
			if err := (Driver{}).Delete(ctx, path, store.OpenOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := names(t, dir); len(got) > 0 {
				t.Errorf("after delete the folder holds %q", got)
			}
		})
	}
}

// TestRelativePath: the working folder may change while a session is open.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	build(t, "s1.db", store.NewSnapshot(header("s1"), nil))
	b := open(t, "s1.db", store.OpenOptions{})
	t.Chdir(t.TempDir())
	commit(t, b, marks.Append("x"))
	if err := b.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
	mustClose(t, b)
	if got := names(t, dir); !slices.Equal(got, []string{"s1.db"}) {
		t.Errorf("the folder holds %v", got)
	}
}
