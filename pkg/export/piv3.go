package export

import (
	"context"
	"io"

	"github.com/drover-run/drover/internal/rawjson"
)

// Report says what a legacy file holds, and what had to be said in another way.
type Report struct {
	Entries int
	// Tails are the compactions whose retained tail is no suffix of their branch:
	// its messages stand as fresh entries in front of them (D56).
	Tails []Tail
}

// Tail is a retained tail that was written as fresh entries.
type Tail struct {
	EntryID  string // the compaction
	Messages int
}

// chunk is how much is put together before it is written.
const chunk = 64 << 10

// PiV3 writes the session as a version 3 file of the coding agent, which opens it
// at the lane's leaf and goes on there. The lane's path comes last; behind it
// stand the lane's model and thinking level, the session's name and the labels.
func (s *Source) PiV3(ctx context.Context, w io.Writer) (Report, error) {
	s.err = nil
	p := &piWriter{Source: s, ctx: ctx, w: w, buf: make([]byte, 0, 2*chunk)}
	p.plan()
	p.head()
	for _, late := range []bool{false, true} {
		if late || p.early {
			p.pass(late)
		}
	}
	p.settings()
	p.flush(1)
	return p.report, p.err
}

// piWriter writes one legacy file.
type piWriter struct {
	*Source
	ctx    context.Context // of the one call that this writer lives for
	w      io.Writer
	buf    []byte
	report Report

	codes   codes
	early   bool   // something comes before the end of the path
	late    []bool // entries that have to wait for it; nil when all do
	tails   tails  // what compactions may refer to
	lastTS  int64  // of the newest entry of the path
	pathEnd bool   // the leaf, or what hangs on it, was written last
}

// plan decides what comes first, and names every entry.
func (p *piWriter) plan() {
	p.codes = newCodes(p.ids.len())
	lastCompaction := none
	for i := range p.ids.len() {
		i := int32(i)
		if !p.wanted(i) {
			continue
		}
		p.codes.name(i, p.ids.id(i))
		if p.kinds[i] == kindCompaction {
			lastCompaction = i
		}
	}
	p.tails = newTails(p.Source, lastCompaction)
	if !p.o.AllBranches {
		return
	}
	p.late = make([]bool, p.ids.len())
	held := 0
	for at := p.leaf; at != none && p.marks[at]&forks == 0; at = p.parents[at] {
		p.late[at] = true
		held++
	}
	p.early = held < p.ids.len()
}

// head writes the session's header.
func (p *piWriter) head() {
	h := &p.header
	b := append(p.buf, `{"type":"session","version":3,"id":`...)
	b = rawjson.AppendQuote(b, h.ID)
	b = append(appendTime(append(b, `,"timestamp":"`...), h.CreatedAt), `","cwd":`...)
	b = rawjson.AppendQuote(b, h.CWD)
	if h.LegacyParentSessionPath != "" {
		b = rawjson.AppendQuote(append(b, `,"parentSession":`...), h.LegacyParentSessionPath)
	}
	p.buf = append(b, "}\n"...)
	p.lastTS = h.CreatedAt
}

// pass writes the entries that wait for the end of the path, or the others.
func (p *piWriter) pass(late bool) {
	pick := func(i int32) bool { return p.late == nil || p.late[i] == late }
	for i, e := range p.entries(p.ctx, pick) {
		if p.err = p.entry(i, e); p.err != nil {
			return
		}
		if p.flush(chunk); p.err != nil {
			return
		}
	}
}

// flush hands on what was put together once it is enough.
func (p *piWriter) flush(enough int) {
	if p.err != nil || len(p.buf) < enough {
		return
	}
	_, p.err = p.w.Write(p.buf)
	p.buf = p.buf[:0]
}

// begin starts a line: the members that every record has.
func (p *piWriter) begin(typ string, code uint32, parent string, ts int64) {
	b := append(append(p.buf, `{"type":"`...), typ...)
	b = appendCode(append(b, `","id":"`...), code)
	b = append(append(b, `","parentId":`...), parent...)
	p.buf = append(appendTime(append(b, `,"timestamp":"`...), ts), '"')
}

// parent is the parentId of an entry, as JSON.
func (p *piWriter) parent(i int32) string { return p.reference(p.parents[i]) }

// reference names an entry, as JSON.
func (p *piWriter) reference(i int32) string {
	if i == none {
		return "null"
	}
	return quoteCode(p.codes.of[i])
}

// settings writes what the session says beside its tree, as a chain on the leaf:
// the agent goes on where the file ends.
func (p *piWriter) settings() {
	if p.err != nil {
		return
	}
	parent, key := p.reference(p.leaf), p.header.ID
	if p.leaf != none {
		key = p.ids.id(p.leaf)
	}
	written := 0
	add := func(typ string, fill func()) {
		written++
		code := p.codes.fresh(key, typ, written)
		p.begin(typ, code, parent, p.lastTS)
		fill()
		p.buf = append(p.buf, "}\n"...)
		parent = quoteCode(code)
	}
	if c := p.config; c != nil {
		add("model_change", func() { p.text("provider", c.Model.Provider); p.text("modelId", c.Model.ModelID) })
		add("thinking_level_change", func() { p.text("thinkingLevel", string(c.ThinkingLevel)) })
	}
	for i := range p.ids.len() {
		label, ok := p.labels[int32(i)]
		if ok && p.wanted(int32(i)) {
			add("label", func() { p.member("targetId", p.reference(int32(i))); p.text("label", label) })
		}
	}
	// The last record says where the agent goes on: where it is no entry of the
	// path, an empty name does, which changes nothing.
	if p.name != "" || written == 0 && p.early && !p.pathEnd {
		add("session_info", func() { p.text("name", p.name) })
	}
}

func (p *piWriter) text(name, value string) {
	p.member(name, string(rawjson.Quote(value)))
}

func (p *piWriter) member(name, value string) {
	p.buf = append(append(append(append(p.buf, `,"`...), name...), `":`...), value...)
}
