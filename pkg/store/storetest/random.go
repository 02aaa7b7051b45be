package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// RunRandom runs random transactions, queries, reopens and rebuilds against the
// driver under test and an oracle, and wants every answer equal. The memory
// encoding is the usual oracle.
func RunRandom(t *testing.T, subject, oracle NewDriver) {
	subjectFixture, oracleFixture := newFixture(t, subject), newFixture(t, oracle)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		p := &pair{t: t, rt: rt, id: fmt.Sprintf("r%d", runs), subject: subjectFixture, oracle: oracleFixture}
		p.create()
		defer p.close()
		rt.Repeat(map[string]func(*rapid.T){
			"commit":  p.commit,
			"query":   p.query,
			"disturb": p.disturb,
			"":        p.compare,
		})
	})
}

// pair is one store in both encodings and what has been put into it.
type pair struct {
	t               *testing.T
	rt              *rapid.T
	id              string
	subject, oracle *fixture
	got, want       store.Backend
	ids             []string // entries
	rows            []string // usage rows
	made            int
	last            int64 // the newest sequence number given
	stamp           int64 // the newest time given
	floor           int64 // of the clock
}

func (p *pair) create() {
	for _, f := range []*fixture{p.subject, p.oracle} {
		f.now = start
		f.build(p.t, p.id, store.NewSnapshot(header(p.id), nil))
	}
	p.openBoth()
}

// openBoth opens both stores. Only entries keep the time of their commit: an
// encoding may forget that of other commits at a close, so the clock does not
// go back behind it afterwards.
func (p *pair) openBoth() {
	p.floor = p.stamp
	p.setClock(p.subject.now)
	open := func(f *fixture) store.Backend {
		b, err := f.driver.Open(p.t.Context(), f.path(p.id), f.options())
		if err != nil {
			p.rt.Fatalf("open: %v", err)
		}
		return b
	}
	p.got, p.want = open(p.subject), open(p.oracle)
}

func (p *pair) close() {
	for _, b := range []store.Backend{p.got, p.want} {
		if err := b.Close(); err != nil {
			p.rt.Errorf("close: %v", err)
		}
	}
}

// disturb does one of the things that should make no difference.
func (p *pair) disturb(rt *rapid.T) {
	what := map[string]func(*rapid.T){"clock": p.moveClock, "reopen": p.reopen, "rebuild": p.rebuild}
	what[rapid.SampledFrom([]string{"clock", "clock", "clock", "reopen", "rebuild"}).Draw(rt, "by")](rt)
}

func (p *pair) reopen(*rapid.T) {
	p.close()
	p.openBoth()
}

// rebuild writes the subject's surviving records as a new store and goes on
// with that, as compaction does.
func (p *pair) rebuild(rt *rapid.T) {
	for _, b := range []store.Backend{p.got, p.want} {
		f := p.subject
		if b == p.want {
			f = p.oracle
		}
		snap, err := b.Snapshot(p.t.Context())
		if err != nil {
			rt.Fatalf("snapshot: %v", err)
		}
		records, err := store.Collect(snap)
		if err != nil {
			rt.Fatalf("read snapshot: %v", err)
		}
		if err := b.Close(); err != nil {
			rt.Fatalf("close: %v", err)
		}
		next := store.NewSnapshot(snap.Header, records)
		next.NextSeq = snap.NextSeq
		if err := f.driver.Build(p.t.Context(), f.path(p.id), next, store.BuildOptions{Replace: true, NoSync: true}); err != nil {
			rt.Fatalf("rebuild: %v", err)
		}
	}
	p.openBoth()
}

func (p *pair) moveClock(rt *rapid.T) {
	p.setClock(p.subject.now + rapid.Int64Range(-2000, 5000).Draw(rt, "ms"))
}

func (p *pair) setClock(ms int64) {
	p.subject.now = max(ms, p.floor)
	p.oracle.now = p.subject.now
}

func (p *pair) commit(rt *rapid.T) {
	d := draft{pair: p, rt: rt, ids: p.ids, rows: p.rows}
	tx := make(store.Tx, rapid.IntRange(0, 6).Draw(rt, "writes"))
	for i := range tx {
		tx[i] = d.write()
	}
	got, gotErr := p.got.Commit(p.t.Context(), tx)
	want, wantErr := p.want.Commit(p.t.Context(), tx)
	var gotInvalid, wantInvalid *store.InvalidWrite
	if errors.As(gotErr, &gotInvalid) != errors.As(wantErr, &wantInvalid) || (gotErr == nil) != (wantErr == nil) {
		rt.Fatalf("commit of %s: got %v, the oracle says %v", TxString(tx), gotErr, wantErr)
	}
	if gotErr != nil {
		if gotInvalid == nil || gotInvalid.Index != wantInvalid.Index {
			rt.Fatalf("commit of %s: got %v, the oracle says %v", TxString(tx), gotErr, wantErr)
		}
		return
	}
	equal(rt, "commit result", got, want)
	p.ids, p.rows, p.stamp = d.ids, d.rows, got.Timestamp
	if n := len(got.Seqs); n > 0 {
		p.last = got.Seqs[n-1]
	}
}

func (p *pair) compare(rt *rapid.T) {
	equal(rt, "contents", contents(p.t, p.got), contents(p.t, p.want))
}

func (p *pair) query(rt *rapid.T) {
	ctx := p.t.Context()
	seq := func(name string) int64 { return rapid.Int64Range(0, p.last+2).Draw(rt, name) }
	limit := func() int { return rapid.IntRange(0, 4).Draw(rt, "limit") }
	types := rapid.SampledFrom([]store.EntryType{"", "", store.TypeMessage, store.TypeCustom, store.TypeCompaction})
	customs := rapid.SampledFrom([]string{"", "", "app.a", "app.b"})
	flip := rapid.Bool()

	eq := store.EntryQuery{Type: types.Draw(rt, "type"), CustomType: customs.Draw(rt, "custom"), FromSeq: seq("from"), ToSeq: seq("to"), Descending: flip.Draw(rt, "desc"), Limit: limit()}
	ask(p, rt, "entries", func(b store.Backend) ([]store.Entry, error) { return b.ScanEntries(ctx, eq) })
	uq := store.UsageQuery{FromSeq: seq("from"), ToSeq: seq("to"), Descending: flip.Draw(rt, "desc"), Limit: limit()}
	ask(p, rt, "usage", func(b store.Backend) ([]store.UsageRow, error) { return b.ScanUsage(ctx, uq) })
	lq := store.ListQuery{Cursor: seq("cursor"), Descending: flip.Draw(rt, "desc"), Limit: limit()}
	addr := p.address(rt)
	ask(p, rt, "list", func(b store.Backend) ([]store.ListElement, error) { return b.ReadList(ctx, addr, lq) })
	prefix := store.Address{Namespace: addr.Namespace, Key: rapid.SampledFrom([]string{"", "k", "kk"}).Draw(rt, "prefix")}
	ask(p, rt, "values", func(b store.Backend) ([]store.StoredValue, error) { return b.ScanValues(ctx, prefix) })
	bq := store.BranchQuery{
		Start: p.id0(rt, "start"), StopAtType: types.Draw(rt, "stop type"), StopAtID: p.id0(rt, "stop id"),
		Type: types.Draw(rt, "type"), CustomType: customs.Draw(rt, "custom"),
		OldestFirst: flip.Draw(rt, "oldest"), Cursor: seq("cursor"), Limit: limit(),
	}
	ask(p, rt, "branch", func(b store.Backend) ([]store.Entry, error) { return b.ScanBranch(ctx, bq) })
	ask(p, rt, "structure", func(b store.Backend) ([]store.Structure, error) { return b.ScanBranchStructure(ctx, bq) })
}

// id0 draws an entry that exists, or now and then one that does not.
func (p *pair) id0(rt *rapid.T, name string) string {
	return rapid.SampledFrom(append([]string{"", "absent"}, p.ids...)).Draw(rt, name)
}

func (p *pair) address(rt *rapid.T) store.Address {
	return store.Address{
		Namespace: rapid.SampledFrom([]string{"app", "app.x"}).Draw(rt, "namespace"),
		Key:       rapid.SampledFrom([]string{"", "k", "kk", "k\U00010000", "k\ue000"}).Draw(rt, "key"),
	}
}

// ask puts one question to both stores; an empty answer may be nil in either.
func ask[T any](p *pair, rt *rapid.T, what string, q func(store.Backend) ([]T, error)) {
	got, gotErr := q(p.got)
	want, wantErr := q(p.want)
	if (gotErr == nil) != (wantErr == nil) || errors.Is(gotErr, store.ErrNotFound) != errors.Is(wantErr, store.ErrNotFound) {
		rt.Fatalf("%s: got error %v, the oracle says %v", what, gotErr, wantErr)
	}
	if len(got) != 0 || len(want) != 0 {
		equal(rt, what, got, want)
	}
}

// draft draws the writes of one transaction.
type draft struct {
	*pair
	rt        *rapid.T
	ids, rows []string
}

func (d *draft) write() store.Write {
	switch rapid.SampledFrom([]string{"entry", "entry", "entry", "usage", "set", "set", "unset", "append", "append", "clear", "odd"}).Draw(d.rt, "write") {
	case "entry":
		return d.entry()
	case "usage":
		id := d.mint(&d.rows)
		cost := float64(rapid.IntRange(0, 1000).Draw(d.rt, "cost")) / 7
		return usageWrite(id, d.some(d.ids, "of"), rapid.Int64Range(0, 99).Draw(d.rt, "input"), cost)
	case "set":
		a := d.address(d.rt)
		return store.NewValue[json.RawMessage](a.Namespace, a.Key).Set(d.json())
	case "unset":
		a := d.address(d.rt)
		return store.NewValue[json.RawMessage](a.Namespace, a.Key).Delete()
	case "append":
		a := d.address(d.rt)
		return store.NewList[json.RawMessage](a.Namespace, a.Key).Append(d.json())
	case "clear":
		a := d.address(d.rt)
		return store.NewList[json.RawMessage](a.Namespace, a.Key).Delete()
	}
	return d.odd()
}

// odd draws a write that should be refused.
func (d *draft) odd() store.Write {
	taken := d.some(slices.Concat(d.ids, d.rows), "taken")
	return rapid.SampledFrom([]store.Write{
		userEntry(taken, "", "taken id"),
		usageWrite(taken, "", 1, 1),
		userEntry("orphan", "absent", "x"),
		userEntry("orphan", d.some(d.rows, "row"), "x"),
		valueA.Set(raw("{")),
		store.NewValue[string]("app", "nul\x00").Set("x"),
	}).Draw(d.rt, "odd")
}

func (d *draft) entry() store.Write {
	parent := d.some(d.ids, "parent")
	id := d.mint(&d.ids)
	switch rapid.IntRange(0, 4).Draw(d.rt, "entry") {
	case 0:
		return customEntry(id, parent, rapid.SampledFrom([]string{"app.a", "app.b"}).Draw(d.rt, "custom"), d.json())
	case 1:
		return compactionEntry(id, parent)
	case 2:
		return store.InsertEntry(store.MessageEntry(id, parent, message.Message(`{"role":"assistant","content":[],"stopReason":"stop"}`)))
	}
	return userEntry(id, parent, "x")
}

// mint makes an id that sorts anywhere among the others.
func (d *draft) mint(into *[]string) string {
	d.made++
	id := fmt.Sprintf("%02x-%d", (d.made*97)%256, d.made)
	*into = append(*into, id)
	return id
}

func (d *draft) some(of []string, name string) string {
	return rapid.SampledFrom(append([]string{""}, of...)).Draw(d.rt, name)
}

func (d *draft) json() json.RawMessage {
	return raw(rapid.SampledFrom([]string{
		`null`, `0`, `-0.0`, `1E400`, `""`, `"\ud800"`, `"é\u00e9"`, `{}`, `[ ]`, ` {"a" : [1, {"a":2}], "a":3}`, `"<&>"`,
	}).Draw(d.rt, "json"))
}
