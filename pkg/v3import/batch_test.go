package v3import_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/v3import"
)

func newRepo(t testing.TB) *store.Repo {
	t.Helper()
	r, err := store.NewRepo(store.RepoOptions{Dir: filepath.Join(t.TempDir(), "repo"), Drivers: []store.Driver{jsonl.Driver{}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// session is a small file; more is put into its header.
func session(id, more string, texts ...string) string {
	out := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"%s}`+"\n", id, more)
	parent := "null"
	for i, s := range texts {
		out += fmt.Sprintf(`{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":%q}}`+"\n", i, parent, s)
		parent = fmt.Sprintf(`"m%d"`, i)
	}
	return out
}

// folder writes files into a folder of their own.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run imports a folder and describes each item in a line: name, status,
// session, codes of warnings, code of the failure.
func run(t testing.TB, target v3import.Target, dir string, o v3import.BatchOptions) string {
	t.Helper()
	if o.Jobs == 0 {
		o.Jobs = 3
	}
	res, err := v3import.Import(t.Context(), target, v3import.Collect([]string{dir}, true).Sources, o)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, it := range res.Items {
		line := fmt.Sprintf("%s %s %s", filepath.Base(it.Source), it.Status, it.Session)
		for _, w := range it.Warnings {
			line += " " + w.Code
		}
		if it.Failure != nil {
			line += fmt.Sprintf(" %s %d:%d", it.Failure.Code, it.Failure.Line, it.Failure.Offset)
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func same(t *testing.T, what, got string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func headers(t *testing.T, r *store.Repo) map[string]store.Header {
	t.Helper()
	listed, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]store.Header)
	for _, l := range listed {
		if l.Err != nil {
			t.Fatal(l.Err)
		}
		out[l.Ref.ID] = l.Header
	}
	return out
}

func texts(t *testing.T, r *store.Repo, id string) []string {
	t.Helper()
	ref, err := r.Resolve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	entries, err := v.ScanEntries(t.Context(), store.EntryQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Message().Text())
	}
	return out
}

func TestB49ImportTwice(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{
		"a.jsonl": session("aaa", "", "one", "two"), "b.jsonl": session("bbb", ""), "bad.jsonl": session("ccc", "") + "oops\n",
		"empty.jsonl": "", "odd.jsonl": session("../x", "", "three"), "note.txt": "no session", "deep/d.jsonl": session("ddd", "", "four"),
	})
	odd := "019b76da-a800-"
	first := run(t, r, dir, v3import.BatchOptions{})
	i := strings.Index(first, odd)
	if i < 0 {
		t.Fatal(first)
	}
	odd = first[i : i+36]
	failed := []string{"bad.jsonl failed  corrupt 2:92", "empty.jsonl failed  corrupt 1:0"}
	same(t, "first run", first, "a.jsonl imported aaa", "b.jsonl imported bbb", failed[0], "d.jsonl imported ddd", failed[1], "odd.jsonl imported "+odd+" session_id")
	second := run(t, r, dir, v3import.BatchOptions{Jobs: 1})
	same(t, "second run", second, "a.jsonl skipped aaa", "b.jsonl skipped bbb", failed[0], "d.jsonl skipped ddd", failed[1], "odd.jsonl skipped "+odd)
	same(t, "with fail", run(t, r, dir, v3import.BatchOptions{OnExists: v3import.OnExistsFail}),
		"a.jsonl failed  session_exists 1:0", "b.jsonl failed  session_exists 1:0", failed[0], "d.jsonl failed  session_exists 1:0", failed[1], "odd.jsonl failed  session_exists 1:0")
	same(t, "new ids do not double", run(t, r, dir, v3import.BatchOptions{Options: v3import.Options{NewID: true}}), strings.Split(second, "\n")...)

	h := headers(t, r)
	if len(h) != 4 || h[odd].LegacySessionID != "../x" || h["aaa"].LegacySessionID != "" {
		t.Errorf("headers %+v", h)
	}
	put(t, filepath.Join(dir, "a.jsonl"), session("aaa", "", "one", "two", "more"))
	same(t, "a longer file", run(t, r, filepath.Join(dir, "a.jsonl"), v3import.BatchOptions{}), "a.jsonl skipped aaa continuation")
	same(t, "a longer file, fail", run(t, r, filepath.Join(dir, "a.jsonl"), v3import.BatchOptions{OnExists: v3import.OnExistsFail}), "a.jsonl failed  session_exists 1:0")
	same(t, "a longer file, replace", run(t, r, filepath.Join(dir, "a.jsonl"), v3import.BatchOptions{OnExists: v3import.OnExistsReplace}), "a.jsonl imported aaa")
	if diff := cmp.Diff([]string{"one", "two", "more"}, texts(t, r, "aaa")); diff != "" {
		t.Error(diff)
	}
	put(t, filepath.Join(dir, "a.jsonl"), session("aaa", "", "other"))
	same(t, "other content of the same id", run(t, r, filepath.Join(dir, "a.jsonl"), v3import.BatchOptions{}), "a.jsonl failed  session_exists 1:0")
	got := run(t, r, filepath.Join(dir, "a.jsonl"), v3import.BatchOptions{Options: v3import.Options{NewID: true}})
	if !strings.HasPrefix(got, "a.jsonl imported 019b76da-a800-") {
		t.Error(got)
	}
	if h := headers(t, r); len(h) != 5 || h["aaa"].Generation != 2 {
		t.Errorf("headers %+v", h)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one"), "b.jsonl": session("aaa", "", "one"), "c.jsonl": session("aaa", "", "two")})
	same(t, "dry run", run(t, r, dir, v3import.BatchOptions{DryRun: true}), "a.jsonl would-import aaa", "b.jsonl skipped aaa", "c.jsonl failed  session_exists 1:0")
	if _, err := os.Stat(r.Dir()); !os.IsNotExist(err) {
		t.Errorf("the repository's folder is there: %v", err)
	}
}

func TestSameIDInOneBatch(t *testing.T) {
	files := map[string]string{"a.jsonl": session("aaa", "", "one"), "a.jsonl.bak.jsonl": session("aaa", "", "one"), "b.jsonl": session("aaa", "", "two")}
	r := newRepo(t)
	same(t, "first in path order wins", run(t, r, folder(t, files), v3import.BatchOptions{}),
		"a.jsonl imported aaa", "a.jsonl.bak.jsonl skipped aaa", "b.jsonl failed  session_exists 1:0")
	r = newRepo(t)
	same(t, "replace does not reach into the batch", run(t, r, folder(t, files), v3import.BatchOptions{OnExists: v3import.OnExistsReplace}),
		"a.jsonl imported aaa", "a.jsonl.bak.jsonl skipped aaa", "b.jsonl failed  session_exists 1:0")
	r = newRepo(t)
	got := run(t, r, folder(t, files), v3import.BatchOptions{Options: v3import.Options{NewID: true}})
	if h := headers(t, r); len(h) != 2 || strings.Count(got, "imported") != 2 || strings.Count(got, "skipped") != 1 {
		t.Error(got)
	}
	r = newRepo(t)
	files["a.jsonl"] = session("aaa", "", "one") + "oops\n"
	same(t, "a broken first leaves the id free", run(t, r, folder(t, files), v3import.BatchOptions{}),
		"a.jsonl failed  corrupt 3:218", "a.jsonl.bak.jsonl imported aaa", "b.jsonl failed  session_exists 1:0")
}

// TestContinuationInOneBatch has a session twice, once as it was earlier.
func TestContinuationInOneBatch(t *testing.T) {
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one"), "b.jsonl": session("aaa", "", "one", "two"), "c.jsonl": session("ccc", `,"parentSession":"b.jsonl"`)})
	for how, want := range map[v3import.OnExists]struct {
		item  string
		texts []string
	}{
		v3import.OnExistsSkip:    {"b.jsonl skipped aaa continuation", []string{"one"}},
		v3import.OnExistsFail:    {"b.jsonl failed  session_exists 1:0", []string{"one"}},
		v3import.OnExistsReplace: {"b.jsonl imported aaa", []string{"one", "two"}},
	} {
		r := newRepo(t)
		child := "c.jsonl imported ccc"
		if how == v3import.OnExistsFail {
			child += " parent_session" // its parent is a file that failed
		}
		same(t, string(how)+", dry run", strings.ReplaceAll(run(t, r, dir, v3import.BatchOptions{OnExists: how, DryRun: true}), "would-import", "imported"), "a.jsonl imported aaa", want.item, child)
		same(t, string(how), run(t, r, dir, v3import.BatchOptions{OnExists: how}), "a.jsonl imported aaa", want.item, child)
		if diff := cmp.Diff(want.texts, texts(t, r, "aaa")); diff != "" {
			t.Error(diff)
		}
	}
}

// changingTarget runs change once, while the first session is written.
type changingTarget struct {
	*store.Repo
	change func()
}

func (c *changingTarget) Import(ctx context.Context, snap *store.Snapshot, o store.ImportOptions) (store.Ref, error) {
	records := snap.Records
	snap.Records = func(yield func(store.Record, error) bool) {
		for r, err := range records {
			if c.change != nil {
				c.change()
				c.change = nil
			}
			if !yield(r, err) {
				return
			}
		}
	}
	return c.Repo.Import(ctx, snap, o)
}

// TestSourceChangesInABatch changes a file while its session is written: what
// was appended is left to a later import, what was rewritten is read again.
// Nothing is taken half.
func TestSourceChangesInABatch(t *testing.T) {
	before := session("aaa", "", "one", "two")
	later := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name, after, item, again string
		texts                    []string
	}{
		{"grown", session("aaa", "", "one", "two", "three"), "a.jsonl imported aaa source_grew", "a.jsonl skipped aaa continuation", []string{"one", "two"}},
		{"rewritten", session("aaa", "", "six", "ten"), "a.jsonl imported aaa", "a.jsonl skipped aaa", []string{"six", "ten"}},
		{"cut", session("aaa", "", "one"), "a.jsonl imported aaa", "a.jsonl skipped aaa", []string{"one"}},
		{"another session", session("bbb", "", "one", "two"), "a.jsonl failed  io 1:0", "a.jsonl imported bbb", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepo(t)
			dir := folder(t, map[string]string{"a.jsonl": before})
			path := filepath.Join(dir, "a.jsonl")
			manifest := filepath.Join(t.TempDir(), "done.ndjson")
			target := &changingTarget{r, func() {
				put(t, path, c.after)
				if err := os.Chtimes(path, later, later); err != nil {
					t.Error(err)
				}
			}}
			same(t, "first", withManifest(t, target, dir, manifest, v3import.BatchOptions{}), c.item)
			if c.texts != nil {
				if diff := cmp.Diff(c.texts, texts(t, r, "aaa")); diff != "" {
					t.Error(diff)
				}
			} else if h := headers(t, r); len(h) != 0 {
				t.Errorf("headers %+v", h)
			}
			same(t, "again", withManifest(t, target, dir, manifest, v3import.BatchOptions{}), c.again)
		})
	}
}

func TestIDTakenByAnotherSession(t *testing.T) {
	r := newRepo(t)
	s, _, err := r.Create(t.Context(), store.CreateOptions{ID: "aaa"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one")})
	got := run(t, r, dir, v3import.BatchOptions{})
	if !strings.HasPrefix(got, "a.jsonl imported 019b76da-a800-") || !strings.HasSuffix(got, " session_id") {
		t.Error(got)
	}
	same(t, "again", run(t, r, dir, v3import.BatchOptions{}), strings.TrimSuffix(strings.Replace(got, "imported", "skipped", 1), " session_id"))
	if h := headers(t, r); len(h) != 2 {
		t.Errorf("headers %+v", h)
	}
}

func TestB34Parents(t *testing.T) {
	r := newRepo(t)
	dir := t.TempDir()
	child := func(parent string) string {
		raw, err := json.Marshal(parent)
		if err != nil {
			t.Fatal(err)
		}
		return `,"parentSession":` + string(raw)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, more := range map[string]string{
		"z-root.jsonl":    "",
		"abs.jsonl":       child(at("z-root.jsonl")),
		"rel.jsonl":       child("./sub/../z-root.jsonl"),
		"windows.jsonl":   child(`C:\Users\x\z-root.jsonl`),
		"elsewhere.jsonl": child("/nowhere/z-root.jsonl"),
		"missing.jsonl":   child("/nowhere/gone.jsonl"),
		"self.jsonl":      child(at("self.jsonl")),
		"ring1.jsonl":     child(at("ring2.jsonl")),
		"ring2.jsonl":     child(at("ring1.jsonl")),
		"old.jsonl":       `,"branchedFrom":"` + at("abs.jsonl") + `"`,
		"broken.jsonl":    child(at("bad.jsonl")),
	} {
		put(t, at(name), session(strings.TrimSuffix(name, ".jsonl"), more, "x"))
	}
	put(t, at("bad.jsonl"), session("bad", "")+"oops\n")
	want := []string{
		"abs.jsonl imported abs", "bad.jsonl failed  corrupt 2:92", "broken.jsonl imported broken parent_session", "elsewhere.jsonl imported elsewhere parent_session",
		"missing.jsonl imported missing parent_session", "old.jsonl imported old", "rel.jsonl imported rel", "ring1.jsonl imported ring1 parent_session",
		"ring2.jsonl imported ring2 parent_session", "self.jsonl imported self parent_session", "windows.jsonl imported windows parent_session", "z-root.jsonl imported z-root",
	}
	same(t, "parents", run(t, r, dir, v3import.BatchOptions{}), want...)
	got := make(map[string][2]string)
	for id, h := range headers(t, r) {
		got[id] = [2]string{h.ParentSessionID, h.LegacyParentSessionPath}
	}
	wantParents := map[string][2]string{
		"z-root": {}, "abs": {"z-root"}, "rel": {"z-root"}, "windows": {"z-root"}, "elsewhere": {"z-root"}, "missing": {"", "/nowhere/gone.jsonl"},
		"self": {"", at("self.jsonl")}, "ring1": {"ring2"}, "ring2": {"ring1"}, "old": {"abs"}, "broken": {"", at("bad.jsonl")},
	}
	if diff := cmp.Diff(wantParents, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	// One file after the other: a parent that came earlier is found in the
	// repository, by the path it was imported from.
	r = newRepo(t)
	for _, name := range []string{"z-root.jsonl", "abs.jsonl", "windows.jsonl"} {
		run(t, r, at(name), v3import.BatchOptions{})
	}
	h := headers(t, r)
	if h["abs"].ParentSessionID != "z-root" || h["windows"].ParentSessionID != "z-root" {
		t.Errorf("headers %+v", h)
	}
	// New ids: the children follow.
	r = newRepo(t)
	run(t, r, dir, v3import.BatchOptions{Options: v3import.Options{NewID: true}})
	byLegacy := make(map[string]store.Header)
	for _, h := range headers(t, r) {
		byLegacy[h.LegacySessionID] = h
	}
	if byLegacy["abs"].ParentSessionID != byLegacy["z-root"].ID || byLegacy["ring1"].ParentSessionID != byLegacy["ring2"].ID || byLegacy["ring2"].ParentSessionID != byLegacy["ring1"].ID {
		t.Errorf("headers %+v", byLegacy)
	}
}

func TestStrictBatch(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{
		"a.jsonl": session("aaa", "", "one"), "b.jsonl": session("bbb", `,"parentSession":"/gone.jsonl"`), "c.jsonl": session("ccc", "") + "null\n",
	})
	same(t, "strict", run(t, r, dir, v3import.BatchOptions{Options: v3import.Options{Strict: true}}),
		"a.jsonl imported aaa", "b.jsonl failed  parent_session strict 1:0", "c.jsonl failed  null_line strict 2:92")
}

// TestParallelBatches imports one folder from several batches at once, as
// several processes would.
func TestParallelBatches(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		put(t, filepath.Join(dir, fmt.Sprintf("f%02d.jsonl", i)), session(fmt.Sprintf("id/%d", i), "", "x"))
		put(t, filepath.Join(dir, fmt.Sprintf("g%02d.jsonl", i)), session(fmt.Sprintf("id-%d", i), "", "x"))
	}
	repoDir := filepath.Join(t.TempDir(), "repo")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var total v3import.Totals
	for range 4 {
		r, err := store.NewRepo(store.RepoOptions{Dir: repoDir, Drivers: []store.Driver{jsonl.Driver{}}})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			res, err := v3import.Import(t.Context(), r, v3import.Collect([]string{dir}, false).Sources, v3import.BatchOptions{Jobs: 2})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			total.Imported += res.Totals.Imported
			total.Skipped += res.Totals.Skipped
			total.Failed += res.Totals.Failed
		})
	}
	wg.Wait()
	if diff := cmp.Diff(v3import.Totals{Imported: 40, Skipped: 120}, total); diff != "" {
		t.Error(diff)
	}
}

func TestProgress(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one"), "bad.jsonl": "oops\n"})
	var last v3import.Progress
	looked := 0
	var done []string
	_, err := v3import.Import(t.Context(), r, v3import.Collect([]string{dir}, false).Sources, v3import.BatchOptions{
		Looked: func(n, all int) {
			if looked++; n != looked || all != 2 || last.Files != 0 {
				t.Errorf("looked at %d of %d in call %d", n, all, looked)
			}
		},
		Progress: func(p v3import.Progress) { last = p },
		Done:     func(it v3import.Item) { done = append(done, filepath.Base(it.Source)+" "+string(it.Status)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(session("aaa", "", "one")) + 5)
	if diff := cmp.Diff(v3import.Progress{Files: 2, FilesDone: 2, Bytes: size, BytesDone: size}, last); diff != "" {
		t.Error(diff)
	}
	if looked != 2 {
		t.Errorf("looked at %d files", looked)
	}
	same(t, "done", strings.Join(done, "\n"), "a.jsonl imported", "bad.jsonl failed")
}

func TestCancelledBatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", ""), "b.jsonl": session("bbb", ""), "c.jsonl": session("ccc", "")})
	res, err := v3import.Import(ctx, newRepo(t), v3import.Collect([]string{dir}, false).Sources, v3import.BatchOptions{Done: func(v3import.Item) { cancel() }})
	if err == nil || len(res.Items) != 1 {
		t.Errorf("error %v, items %+v", err, res.Items)
	}
}

func TestItemJSON(t *testing.T) {
	r := newRepo(t)
	dir := folder(t, map[string]string{"a.jsonl": session("aaa", "", "one") + "null\n", "bad.jsonl": session("bbb", "") + "<oops\n"})
	res, err := v3import.Import(t.Context(), r, v3import.Collect([]string{dir}, false).Sources, v3import.BatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, it := range res.Items {
		b, err := it.AppendJSON(nil)
		if err != nil || !json.Valid(b) {
			t.Fatalf("%s: %v", b, err)
		}
		got = append(got, strings.ReplaceAll(string(b), dir+"/", ""))
	}
	zero := `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	same(t, "items", strings.Join(got, "\n"),
		`{"source":"a.jsonl","session":"aaa","status":"imported","entries":1,"discarded":0,"messages":1,"kinds":{"message":1},"usage":`+zero+
			`,"warnings":[{"line":3,"offset":218,"code":"null_line","message":"null skipped"}],"error":null}`,
		`{"source":"bad.jsonl","session":null,"status":"failed","entries":0,"discarded":0,"messages":0,"kinds":{},"usage":`+zero+
			`,"warnings":[],"error":{"code":"corrupt","message":"malformed line: expected a value at byte 92","line":2,"offset":92}}`)
}
