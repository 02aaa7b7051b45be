// Package bulk makes sessions of any size, for benchmarks and for trials of what
// the commands do at scale.
package bulk

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// Shape describes a session. Two of the same shape are equal to the byte.
type Shape struct {
	ID      string
	CWD     string
	Entries int
	// Text is about how many bytes of text a message has; 0 means 900, which
	// makes an entry of about 1 KB.
	Text int
	// Plain leaves out side branches and compactions: one branch of messages.
	Plain bool
}

// start is the time of the first entry, Unix ms.
const start = int64(1_700_000_000_000)

// The rhythm of a session that is not plain.
const (
	sideEvery       = 10   // the last of as many entries is a leaf beside the path
	compactionEvery = 1000 // and so often the path has a compaction
)

// EntryID is the id of a session's entry number i, from 0.
func EntryID(i int) string { return fmt.Sprintf("018bcfe5-6800-7000-8000-%012x", i) }

// usageID is the id of the usage row of entry i.
func usageID(i int) string { return fmt.Sprintf("018bcfe5-6800-7000-9000-%012x", i) }

func (s Shape) side(i int) bool { return !s.Plain && i%sideEvery == sideEvery-1 }

func (s Shape) compaction(i int) bool { return !s.Plain && i%compactionEvery == compactionEvery/2 }

func (s Shape) answer(i int) bool { return i%2 == 1 && !s.compaction(i) }

// Leaf is the id of the newest entry of the main lane, "" of an empty session.
func (s Shape) Leaf() string { return s.before(s.Entries) }

// before is the newest entry of the path that lies before entry i.
func (s Shape) before(i int) string {
	for i--; i >= 0; i-- {
		if !s.side(i) {
			return EntryID(i)
		}
	}
	return ""
}

// Counts is what a check of the session has to count.
func (s Shape) Counts() store.Counts {
	c := store.Counts{Entries: int64(s.Entries), Values: 4, Lanes: 1}
	for i := range s.Entries {
		if !s.compaction(i) {
			c.Messages++
		}
		if s.answer(i) {
			c.Usage++
		}
	}
	return c
}

// Snapshot is the session, made while it is read: it may have millions of
// entries.
func (s Shape) Snapshot() (*store.Snapshot, error) {
	counts := s.Counts()
	next := counts.Entries + counts.Usage + 1
	values, _, err := store.Prepare(s.values(), store.Base{NextSeq: next, Now: start})
	if err != nil {
		return nil, fmt.Errorf("make session %s: %w", s.ID, err)
	}
	return &store.Snapshot{
		Header:  store.Header{ID: s.ID, StorageVersion: store.StorageVersion, CreatedAt: start, CWD: s.CWD, Generation: 1},
		NextSeq: next + int64(len(values)),
		Records: func(yield func(store.Record, error) bool) { s.records(values, yield) },
		Close:   func() error { return nil },
	}, nil
}

// values are the current values of the session, which come last.
func (s Shape) values() store.Tx {
	return store.Tx{
		store.SessionName().Set("session " + s.ID),
		store.LaneConfig(store.MainLane).Set(store.LaneConfiguration{
			Model: message.ModelRef{Provider: "scripted", ModelID: "echo"}, ThinkingLevel: "off",
		}),
		store.LaneStateOf(store.MainLane).Set(store.LaneState{}),
		store.LaneLeaf(store.MainLane).Set(store.LeafID(s.Leaf())),
	}
}

const usage = `{"input":1200,"output":431,"cacheRead":0,"cacheWrite":0,"totalTokens":1631,` +
	`"cost":{"input":0.0036,"output":0.006465,"cacheRead":0,"cacheWrite":0,"total":0.010065}}`

func (s Shape) records(values []store.Record, yield func(store.Record, error) bool) {
	words, seq := s.words(), int64(0)
	for i := range s.Entries {
		seq++
		e := s.entry(i, seq, words)
		if !yield(store.Record{Kind: store.KindEntry, Seq: seq, Entry: e}, nil) {
			return
		}
		if !s.answer(i) {
			continue
		}
		seq++
		row := &store.UsageRow{ID: usageID(i), Seq: seq, EntryID: e.ID, Usage: []byte(usage)}
		if !yield(store.Record{Kind: store.KindUsage, Seq: seq, Usage: row}, nil) {
			return
		}
	}
	for _, r := range values {
		if !yield(r, nil) {
			return
		}
	}
}

// words is a JSON string's content of the wanted length, with a few escapes and
// letters of two bytes, as texts have them.
func (s Shape) words() string {
	const sentence = `The drover walks behind; \"steady\" he says, and the herd goes on over the hügel. `
	text := s.Text
	if text == 0 {
		text = 900
	}
	return strings.Repeat(sentence, max(1, text/len(sentence)))
}

func (s Shape) entry(i int, seq int64, words string) *store.Entry {
	e := &store.Entry{Structure: store.Structure{
		ID: EntryID(i), ParentID: s.before(i), Seq: seq, Timestamp: start + int64(i), Type: store.TypeMessage,
	}}
	switch {
	case s.compaction(i):
		e.Type = store.TypeCompaction
		e.Payload = []byte(`{"summary":"what was said so far","retainedTail":[],"tokensBefore":` + strconv.Itoa(i) + `,"fromHook":false}`)
	case s.answer(i):
		e.Payload = payload(`{"message":{"role":"assistant","content":[{"type":"text","text":"`, i, words,
			`"}],"api":"scripted","provider":"scripted","model":"echo","usage":`+usage+`,"stopReason":"stop","timestamp":`, e.Timestamp)
	default:
		e.Payload = payload(`{"message":{"role":"user","content":[{"type":"text","text":"`, i, words, `"}],"timestamp":`, e.Timestamp)
	}
	return e
}

func payload(front string, i int, words, middle string, stamp int64) []byte {
	b := make([]byte, 0, len(front)+len(words)+len(middle)+40)
	b = rawjson.AppendInt(append(b, front...), int64(i))
	b = append(append(append(b, ' '), words...), middle...)
	return append(rawjson.AppendInt(b, stamp), "}}"...)
}

// Build writes a session into a folder, without waiting for the disk, and
// returns its path.
func Build(ctx context.Context, d store.Driver, dir string, s Shape) (string, error) {
	snap, err := s.Snapshot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, s.ID+d.Ext())
	return path, d.Build(ctx, path, snap, store.BuildOptions{NoSync: true})
}

// Fill writes n sessions of one shape, whose ids are the shape's and a number.
func Fill(ctx context.Context, d store.Driver, dir string, n int, s Shape) error {
	prefix := s.ID
	for i := range n {
		s.ID = fmt.Sprintf("%s-%05d", prefix, i)
		if _, err := Build(ctx, d, dir, s); err != nil {
			return err
		}
	}
	return nil
}
