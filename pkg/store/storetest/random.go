package storetest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// RunRandom runs random transactions, queries, reopens and rebuilds against the
// drivers under test and an oracle, and wants every answer equal. The memory
// encoding is the usual oracle.
//
// It does 2,000 operations, or 100,000 with DROVER_TEST_LONG set. A failure tells
// its seed; -rapid.seed=N repeats it.
func RunRandom(t *testing.T, oracle NewDriver, subjects ...NewDriver) {
	operations := 2_000
	if os.Getenv("DROVER_TEST_LONG") != "" {
		operations = 100_000
		setFlag(t, "rapid.steps", "50")
	}
	setFlag(t, "rapid.checks", "20")
	fixtures := []*fixture{newFixture(t, oracle)}
	for _, subject := range subjects {
		fixtures = append(fixtures, newFixture(t, subject))
	}
	runs, done := 0, 0
	counted := func(f func(*rapid.T)) func(*rapid.T) {
		return func(rt *rapid.T) { done++; f(rt) }
	}
	for done < operations && !t.Failed() {
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			p := &pack{t: t, rt: rt, id: fmt.Sprintf("r%d", runs), fixtures: fixtures}
			p.create()
			defer p.close()
			rt.Repeat(map[string]func(*rapid.T){
				"commit":  counted(p.commit),
				"query":   counted(p.query),
				"disturb": counted(p.disturb),
				"":        p.compare,
			})
		})
	}
	t.Logf("%d operations in %d histories", done, runs)
}

// setFlag sets a flag that was not set on the command line.
func setFlag(t *testing.T, name, value string) {
	f := flag.Lookup(name)
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// pack is one store in several encodings and what has been put into it. The first
// is the oracle.
type pack struct {
	t        *testing.T
	rt       *rapid.T
	id       string
	fixtures []*fixture
	stores   []store.Backend
	ids      []string // entries
	rows     []string // usage rows
	made     int
	last     int64 // the newest sequence number given
	stamp    int64 // the newest time given
	floor    int64 // of the clock
}

func (p *pack) create() {
	for _, f := range p.fixtures {
		f.now = start
		f.build(p.t, p.id, store.NewSnapshot(header(p.id), nil))
	}
	p.open()
}

// open opens the stores. Only entries keep the time of their commit: an encoding
// may forget that of other commits at a close, so the clock does not go back
// behind it afterwards.
func (p *pack) open() {
	p.floor = p.stamp
	p.setClock(p.now())
	p.stores = nil
	for _, f := range p.fixtures {
		b, err := f.driver.Open(p.t.Context(), f.path(p.id), f.options())
		if err != nil {
			p.rt.Fatalf("open %s: %v", f.driver.Name(), err)
		}
		p.stores = append(p.stores, b)
	}
}

func (p *pack) close() {
	for _, b := range p.stores {
		if err := b.Close(); err != nil {
			p.rt.Errorf("close: %v", err)
		}
	}
}

func (p *pack) now() int64 { return p.fixtures[0].now }

// disturb does one of the things that should make no difference.
func (p *pack) disturb(rt *rapid.T) {
	what := map[string]func(*rapid.T){"clock": p.moveClock, "reopen": p.reopen, "rebuild": p.rebuild, "compact": p.compact}
	what[rapid.SampledFrom([]string{"clock", "clock", "clock", "reopen", "rebuild", "compact"}).Draw(rt, "by")](rt)
}

func (p *pack) reopen(*rapid.T) {
	p.close()
	p.open()
}

// rebuild writes the surviving records as a new store and goes on with that, as
// compaction does.
func (p *pack) rebuild(rt *rapid.T) {
	for i, b := range p.stores {
		f := p.fixtures[i]
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
	p.open()
}

// compact makes the files smaller that can be.
func (p *pack) compact(rt *rapid.T) {
	for i, b := range p.stores {
		if c, ok := b.(store.Compacter); ok {
			if _, err := c.Compact(p.t.Context(), store.CompactOptions{}); err != nil {
				rt.Fatalf("compact %s: %v", p.fixtures[i].driver.Name(), err)
			}
		}
	}
}

func (p *pack) moveClock(rt *rapid.T) {
	p.setClock(p.now() + rapid.Int64Range(-2000, 5000).Draw(rt, "ms"))
}

func (p *pack) setClock(ms int64) {
	for _, f := range p.fixtures {
		f.now = max(ms, p.floor)
	}
}

func (p *pack) commit(rt *rapid.T) {
	d := draft{pack: p, rt: rt, ids: p.ids, rows: p.rows}
	tx := make(store.Tx, rapid.IntRange(0, 6).Draw(rt, "writes"))
	for i := range tx {
		tx[i] = d.write()
	}
	want, wantErr := p.stores[0].Commit(p.t.Context(), tx)
	for i, b := range p.stores[1:] {
		got, gotErr := b.Commit(p.t.Context(), tx)
		if refusal(gotErr) != refusal(wantErr) {
			rt.Fatalf("commit of %s to %s: got %v, the oracle says %v", TxString(tx), p.fixtures[i+1].driver.Name(), gotErr, wantErr)
		}
		equal(rt, "commit result", got, want)
	}
	if wantErr != nil {
		return
	}
	p.ids, p.rows, p.stamp = d.ids, d.rows, want.Timestamp
	if n := len(want.Seqs); n > 0 {
		p.last = want.Seqs[n-1]
	}
}

// refusal tells what came of a commit: the number of the invalid write, -1 for
// none, -2 for another failure.
func refusal(err error) int {
	if err == nil {
		return -1
	}
	var invalid *store.InvalidWrite
	if errors.As(err, &invalid) {
		return invalid.Index
	}
	return -2
}

func (p *pack) compare(rt *rapid.T) {
	want := contents(p.t, p.stores[0])
	for i, b := range p.stores[1:] {
		equal(rt, "contents of "+p.fixtures[i+1].driver.Name(), contents(p.t, b), want)
	}
}

func (p *pack) query(rt *rapid.T) {
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
func (p *pack) id0(rt *rapid.T, name string) string {
	return rapid.SampledFrom(append([]string{"", "absent"}, p.ids...)).Draw(rt, name)
}

func (p *pack) address(rt *rapid.T) store.Address {
	return store.Address{
		Namespace: rapid.SampledFrom([]string{"app", "app.x"}).Draw(rt, "namespace"),
		Key:       rapid.SampledFrom([]string{"", "k", "kk", "k\U00010000", "k\ue000"}).Draw(rt, "key"),
	}
}

// ask puts one question to all stores; an empty answer may be nil in any.
func ask[T any](p *pack, rt *rapid.T, what string, q func(store.Backend) ([]T, error)) {
	want, wantErr := q(p.stores[0])
	for i, b := range p.stores[1:] {
		name := p.fixtures[i+1].driver.Name()
		got, gotErr := q(b)
		if (gotErr == nil) != (wantErr == nil) || errors.Is(gotErr, store.ErrNotFound) != errors.Is(wantErr, store.ErrNotFound) {
			rt.Fatalf("%s of %s: got error %v, the oracle says %v", what, name, gotErr, wantErr)
		}
		if len(got) != 0 || len(want) != 0 {
			equal(rt, what+" of "+name, got, want)
		}
	}
}

// draft draws the writes of one transaction.
type draft struct {
	*pack
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
