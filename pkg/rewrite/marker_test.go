package rewrite_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// The text that has to go: raw, escaped and HTML-escaped it is spelled
// differently (B44).
const marker = `ERASE-<&"é😀-77`

const gone = "[gone]"

// The spellings of a text inside a JSON string.

func plain(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }

func html(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

func escapes(format string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&b, format, unit)
		}
		return b.String()
	}
}

func nested(text string) string { return html(html(text)) }

// place is one place where content lives. template has one %s, inside of a JSON
// string, and makes what write commits.
type place struct {
	name     string
	template string
	write    func(w *world, raw string)
}

// places are all that a session has: what the format knows, in an ordinary
// spelling, and every spelling somewhere.
func places() []place {
	all := []place{
		{"user text", `{"message":{"role":"user","content":"a %s b","timestamp":1}}`, message},
		{"user block", `{"message":{"role":"user","content":[{"type":"text","text":"%s"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}],"timestamp":1}}`, message},
		{"assistant text", assistant(`{"type":"text","text":"x %s"}`, ""), message},
		{"thinking", assistant(`{"type":"thinking","thinking":"hm %s"}`, ""), message},
		{"tool argument", assistant(call(`{"path":"/a/%s"}`), `,"k":1`), message},
		{"tool argument key", assistant(call(`{"x %s":1}`), ""), message},
		{"nested tool argument", assistant(call(`{"a":[{"b":["c",{"d":"%s"}]}]}`), ""), message},
		{"error message", assistant(``, `,"errorMessage":"no %s"`), message},
		{"diagnostics", assistant(``, `,"diagnostics":[{"type":"note","text":"%s"}]`), message},
		{"why a poll failed", assistant(``, `,"diagnostics":[{"type":"provider_error","class":"network","message":"no %s"}]`), message},
		{"unknown field of a message", assistant(``, `,"later":{"x":"%s"}`), message},
		{"unknown key of a message", assistant(``, `,"%s":1`), message},
		{"tool result", result(`"content":[{"type":"text","text":"%s"}]`), message},
		{"tool result details", result(`"content":[],"details":{"out":"%s"}`), message},
		{"tool result details key", result(`"content":[],"details":{"out":{"%s":[]}}`), message},
		{"custom message", `{"message":{"role":"custom","customType":"note","content":"%s","display":true,"timestamp":1}}`, message},
		{"custom message details", `{"message":{"role":"custom","customType":"note","content":"","display":true,"details":["%s"],"timestamp":1}}`, message},
		{"bash command", `{"message":{"role":"bashExecution","command":"echo %s","output":"","cancelled":false,"truncated":false,"timestamp":1}}`, message},
		{"bash output", `{"message":{"role":"bashExecution","command":"","output":"%s","cancelled":false,"truncated":false,"timestamp":1}}`, message},
		{"bash output path", `{"message":{"role":"bashExecution","command":"","output":"","fullOutputPath":"/tmp/%s","cancelled":false,"truncated":true,"timestamp":1}}`, message},
		{"system content", `{"message":{"role":"system","content":"%s","timestamp":1}}`, message},
		{"system section", `{"message":{"role":"system","content":"","sections":{"a":"%s"},"timestamp":1}}`, message},
		{"system section name", `{"message":{"role":"system","content":"","sections":{"%s":null},"timestamp":1}}`, message},
		{"branch summary message", `{"message":{"role":"branchSummary","summary":"%s","fromId":"x","timestamp":1}}`, message},
		{"compaction summary message", `{"message":{"role":"compactionSummary","summary":"%s","tokensBefore":1,"timestamp":1}}`, message},
		{"unknown field of an entry", `{"message":{"role":"user","content":"","timestamp":1},"later":"%s"}`, message},
		{"compaction summary", `{"summary":"%s","retainedTail":[],"tokensBefore":1,"fromHook":false}`, entry(store.TypeCompaction)},
		{"compaction details", `{"summary":"","retainedTail":[],"tokensBefore":1,"fromHook":false,"details":{"files":["%s"]}}`, entry(store.TypeCompaction)},
		{"retained text", `{"summary":"","retainedTail":[{"role":"user","content":"%s","timestamp":1}],"tokensBefore":1,"fromHook":false}`, entry(store.TypeCompaction)},
		{"retained argument", `{"summary":"","retainedTail":[{"role":"assistant","content":[` + call(`{"q":"%s"}`) + `]}],"tokensBefore":1,"fromHook":false}`, entry(store.TypeCompaction)},
		{"branch summary", `{"fromId":"","summary":"%s","fromHook":false}`, entry(store.TypeBranchSummary)},
		{"branch summary details", `{"fromId":"","summary":"","fromHook":true,"details":"%s"}`, entry(store.TypeBranchSummary)},
		{"custom data", `{"data":{"v":"%s"}}`, custom},
		{"custom data key", `{"data":{"%s":{"%[1]s":2}}}`, custom},
		{"label", `"%s"`, func(w *world, raw string) { w.set("pi.entry.label", w.first, raw) }},
		{"session name", `"%s"`, func(w *world, raw string) { w.set("pi.session.name", "", raw) }},
		{"usage details", `{"attribution":{"lane":"main"},"note":"%s"}`, usage},
		{"usage details key", `{"%s":true}`, usage},
		{"queued message", `{"type":"message","payload":{"role":"user","content":"%s","timestamp":1}}`, queued},
		{"queued custom data", `{"type":"custom","customType":"note","payload":["%s"]}`, queued},
		{"value", `{"deep":["%s"]}`, value},
		{"value key", `{"%s":1}`, value},
		{"list element", `"%s"`, list},
		{"list element key", `[{"%s":null}]`, list},
		{"error of the last result", `{"operationId":"op","kind":"run","outcome":"failed","leafId":null,"error":{"code":"x","message":"%s"}}`, lastResult},
		{"details of the last result", `{"operationId":"op","kind":"run","outcome":"failed","leafId":null,"error":{"code":"x","message":"","details":{"y":"%s"}}}`, lastResult},
	}
	return all
}

func assistant(block, more string) string {
	return `{"message":{"role":"assistant","content":[` + block + `],"api":"a","provider":"p","model":"m","usage":{},"stopReason":"stop","timestamp":1` + more + `}}`
}

func call(arguments string) string {
	return `{"type":"toolCall","id":"c1","name":"bash","arguments":` + arguments + `}`
}

func result(rest string) string {
	return `{"message":{"role":"toolResult","toolCallId":"c1","toolName":"bash",` + rest + `,"isError":false,"timestamp":1}}`
}

func message(w *world, raw string) { w.entry(store.TypeMessage, "", raw) }
func custom(w *world, raw string)  { w.entry(store.TypeCustom, "note", raw) }
func entry(t store.EntryType) func(*world, string) {
	return func(w *world, raw string) { w.entry(t, "", raw) }
}
func value(w *world, raw string) { w.set("app", "v"+strconv.Itoa(w.n), raw) }
func list(w *world, raw string) {
	w.commit(store.NewList[json.RawMessage]("app", "list").Append(json.RawMessage(raw)))
}
func lastResult(w *world, raw string) { w.set("pi.lane.lastResult", "main", raw) }

func usage(w *world, raw string) {
	w.n++
	w.commit(store.InsertUsage(store.NewUsage{ID: id(w.n), EntryID: w.first, RawUsage: json.RawMessage(`{"input":1}`), Details: json.RawMessage(raw)}))
}

func queued(w *world, raw string) {
	w.n++
	w.pending = append(w.pending, id(w.n))
	w.commit(
		store.NewValue[json.RawMessage]("pi.pending.entry", id(w.n)).Set(json.RawMessage(raw)),
		store.LaneStateOf("main").Set(store.LaneState{PendingNextRun: w.pending}),
	)
}

// world is a session that the tests write, with ids and times of its own.
type world struct {
	tb      testing.TB
	repo    *store.Repo
	ref     store.Ref
	s       *store.Session
	n       int
	first   string
	leaf    string
	pending []string
}

func id(n int) string { return fmt.Sprintf("018bcfe5-6800-7000-8000-%012x", n) }

func newWorld(t testing.TB, d store.Driver) *world {
	t.Helper()
	return worldAt(t, d, "/work")
}

func worldAt(t testing.TB, d store.Driver, cwd string) *world {
	t.Helper()
	repo, err := store.NewRepo(store.RepoOptions{
		Dir: filepath.Join(t.TempDir(), "repo"), Drivers: []store.Driver{d}, Now: func() int64 { return 1_700_000_000_000 },
	})
	if err != nil {
		t.Fatal(err)
	}
	s, ref, err := repo.Create(t.Context(), store.CreateOptions{ID: "s", CWD: cwd})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{tb: t, repo: repo, ref: ref, s: s}
	t.Cleanup(func() { _ = w.s.Close() })
	return w
}

func (w *world) commit(writes ...store.Write) {
	w.tb.Helper()
	err := w.s.Mutate(context.Background(), "main", func(m *store.Mutator) error {
		_, err := m.Commit(writes)
		return err
	})
	if err != nil {
		w.tb.Fatalf("%s: %v", writes[0].Value, err)
	}
}

func (w *world) set(namespace, key, raw string) {
	w.tb.Helper()
	w.n++
	w.commit(store.NewValue[json.RawMessage](namespace, key).Set(json.RawMessage(raw)))
}

func (w *world) entry(t store.EntryType, customType, raw string) string {
	w.tb.Helper()
	return w.below(w.leaf, t, customType, raw)
}

// below places an entry and moves main to it.
func (w *world) below(parent string, t store.EntryType, customType, raw string) string {
	w.tb.Helper()
	w.n++
	e := store.NewEntry{ID: id(w.n), ParentID: parent, Type: t, CustomType: customType, Payload: json.RawMessage(raw)}
	w.commit(store.InsertEntry(e), store.LaneLeaf("main").Set(store.LeafID(e.ID)))
	w.leaf = e.ID
	if w.first == "" {
		w.first = e.ID
	}
	return e.ID
}

// fill writes every place with a text, in each spelling, and then what is dead.
func (w *world) fill(text string) {
	spellings := []func(string) string{plain, html, escapes(`\u%04x`), escapes(`\u%04X`), nested}
	if text == gone {
		spellings = []func(string) string{plain, plain, plain, plain, plain}
	}
	w.entry(store.TypeMessage, "", `{"message":{"role":"user","content":"nothing to see","timestamp":1.50}}`)
	for i, p := range places() {
		p.write(w, fmt.Sprintf(p.template, spellings[0](text)))
		p.write(w, fmt.Sprintf(p.template, spellings[1+i%4](text)))
		p.write(w, fmt.Sprintf(p.template, `untouched \u0041 \/`))
	}
	// The last of these counts, so that others of the same address are dead.
	w.set("pi.session.name", "", `"`+plain(text)+`"`)
	w.set("pi.entry.label", w.first, `"`+html(text)+`"`)
	w.set("pi.lane.lastResult", "main", `{"operationId":"op","kind":"run","outcome":"failed","leafId":null,"error":{"code":"x","message":"`+plain(text)+`"}}`)
	// What an ended operation had: frames, a memo, a checkpoint, staged content.
	frames := store.NewList[json.RawMessage]("pi.pending.assistant_frame", "op:r")
	for _, a := range []string{"pi.op.tool_memo", "pi.pending.tool_output", "pi.op.state"} {
		v := store.NewValue[json.RawMessage](a, "op:x")
		w.commit(v.Set(json.RawMessage(`"`+plain(text)+`"`)), frames.Append(json.RawMessage(`{"delta":"`+html(text)+`"}`)))
		w.commit(v.Delete(), frames.Delete())
	}
	w.commit(store.Pending(id(1 << 20)).Set(store.PendingEntry{Type: store.TypeMessage, Payload: json.RawMessage(`{"role":"user","content":"` + plain(text) + `"}`)}))
	w.commit(store.Pending(id(1 << 20)).Delete())
}

func records(t testing.TB, q store.Queries) []store.Record {
	t.Helper()
	snap, err := q.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := store.Collect(snap)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// plan plans on the open session.
func (w *world) plan(s *rewrite.Selection, prove ...string) (*rewrite.Plan, error) {
	w.tb.Helper()
	snap, err := w.s.Snapshot(context.Background())
	if err != nil {
		w.tb.Fatal(err)
	}
	defer snap.Close()
	return rewrite.Make(context.Background(), snap, s, prove)
}

// rewrite plans and executes.
func (w *world) rewrite(s *rewrite.Selection, prove ...string) *rewrite.Plan {
	w.tb.Helper()
	p, err := w.plan(s, prove...)
	if err == nil {
		err = p.Refusal()
	}
	if err == nil {
		proof := rewrite.NewProof(s.Rules, prove)
		proof.Gone(p)
		r := &rewrite.Rewrite{Plan: p, Proof: proof, Checks: []store.Check{engine.Check}, At: 1}
		err = r.Execute(context.Background(), w.s)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
	return p
}

func rules(t testing.TB, text string) *rewrite.Rules {
	t.Helper()
	r, err := rewrite.ParseRules(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func drivers() []store.Driver { return []store.Driver{jsonl.Driver{}, sqlite.Driver{}} }

// B44: after a redaction the text is nowhere in any file, by a search that knows
// nothing of how the rewrite looks for it, and all else is as it was to the byte.
func TestB44MarkerIsGone(t *testing.T) {
	if n := len(places()); n < 40 {
		t.Fatalf("%d places only", n)
	}
	for _, d := range drivers() {
		t.Run(d.Name(), func(t *testing.T) {
			w, want := worldAt(t, d, "/at/"+marker), worldAt(t, d, "/at/"+gone)
			w.fill(marker)
			want.fill(gone)
			leaveBehind(t, w.ref.Path)
			if n := occurrences(t, w.repo.Dir()); n < 2*len(places()) {
				t.Fatalf("the search finds the marker %d times before", n)
			}
			p := w.rewrite(&rewrite.Selection{Rules: rules(t, marker+" ==> "+gone)})
			if p.Attachments == 0 {
				t.Error("no attachment is reported")
			}
			if n := occurrences(t, w.repo.Dir()); n > 0 {
				t.Errorf("the marker is found %d times in the files of the open session", n)
			}
			if diff := cmp.Diff(records(t, want.s), records(t, w.s)); diff != "" {
				t.Errorf("not what was wanted (-want +got):\n%s", diff)
			}
			if h := w.s.Header(); h.Generation != 2 || h.CWD != want.s.Header().CWD {
				t.Errorf("generation %d in %s", h.Generation, h.CWD)
			}
			if err := w.s.Close(); err != nil {
				t.Fatal(err)
			}
			if n := occurrences(t, w.repo.Dir()); n > 0 {
				t.Errorf("the marker is found %d times once the session is closed", n)
			}
		})
	}
}

// leaveBehind writes what a crashed earlier run leaves beside a session.
func leaveBehind(t *testing.T, path string) {
	t.Helper()
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp-0123abcd")
	names := []string{temp}
	if strings.HasSuffix(path, ".db") {
		names = append(names, temp+"-wal")
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte(plain(marker)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	unicodeEscape = regexp.MustCompile(`(?i)\\u([0-9a-f]{4})(?:\\u([0-9a-f]{4}))?`)
	shortEscape   = regexp.MustCompile(`\\(["\\/])`)
)

// occurrences counts the marker in every file below dir, in as many layers of
// escapes as anybody writes.
func occurrences(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			n += bytes.Count(text, []byte(marker))
			text = shortEscape.ReplaceAll(unicodeEscape.ReplaceAllFunc(text, decodeUnits), []byte("$1"))
		}
		n += bytes.Count(text, []byte("ERASE-"))
	}
	return n
}

func decodeUnits(escape []byte) []byte {
	m := unicodeEscape.FindSubmatch(escape)
	var units []uint16
	for _, hex := range m[1:] {
		if len(hex) > 0 {
			n, _ := strconv.ParseUint(string(hex), 16, 16)
			units = append(units, uint16(n))
		}
	}
	return []byte(string(utf16.Decode(units)))
}
