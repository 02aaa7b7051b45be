package bench

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// The transaction of a settled answer: an entry of about 1.2 KB, the operation's
// state, the lane's leaf, a usage row, the deletion of the frame list.
type answer struct {
	id, parent, usageID string
	message             string
	state, leaf, usage  string
}

var text = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 25)

func newAnswer(i int) answer {
	a := answer{
		id:      fmt.Sprintf("01900000-0000-7000-8000-%012x", 2*i),
		usageID: fmt.Sprintf("01900000-0000-7000-8000-%012x", 2*i+1),
		message: `{"role":"assistant","content":[{"type":"text","text":"` + text + `"}],"stopReason":"stop"}`,
		state:   `{"phase":"checkpoint","pad":"` + strings.Repeat("x", 450) + `"}`,
		usage:   `{"input":1200,"output":431,"cacheRead":0,"cacheWrite":0,"totalTokens":1631,"cost":{"input":0.0036,"output":0.006465,"cacheRead":0,"cacheWrite":0,"total":0.010065}}`,
	}
	if i > 0 {
		a.parent = fmt.Sprintf("01900000-0000-7000-8000-%012x", 2*i-2)
	}
	a.leaf = `"` + a.id + `"`
	return a
}

func emptyStore(b *testing.B, name string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	snap := store.NewSnapshot(store.Header{ID: name, StorageVersion: store.StorageVersion, Generation: 1}, nil)
	if err := (sqlite.Driver{}).Build(context.Background(), path, snap, store.BuildOptions{}); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkSQLiteCommit alternates one commit of drover with the same SQL
// through C SQLite (database/sql, kept statements), so that both see the same
// disk, and compares their medians.
func BenchmarkSQLiteCommit(b *testing.B) {
	ours, err := sqlite.Driver{}.Open(context.Background(), emptyStore(b, "ours.db"), store.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer ours.Close()
	c := openC(b, emptyStore(b, "c.db"))
	defer c.close()

	oursTook, cTook := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	for i := 0; b.Loop(); i++ {
		a := newAnswer(i)
		t0 := time.Now()
		commitOurs(b, ours, a)
		t1 := time.Now()
		c.commit(b, a, int64(i*5+1))
		t2 := time.Now()
		oursTook, cTook = append(oursTook, t1.Sub(t0)), append(cTook, t2.Sub(t1))
	}
	p50, yard := median(oursTook), median(cTook)
	b.ReportMetric(float64(p50.Nanoseconds()), "drover-p50-ns")
	b.ReportMetric(float64(yard.Nanoseconds()), "c-p50-ns")
	b.ReportMetric(float64(yard)/float64(p50), "of-yardstick")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

var (
	opState = store.NewValue[rawJSON]("pi.op.state", "op_9")
	leaf    = store.NewValue[rawJSON]("pi.lane.leaf", "main")
	frames  = store.NewList[rawJSON]("pi.pending.assistant_frame", "op_9:e_51")
)

type rawJSON string

func (r rawJSON) AppendJSON(dst []byte) ([]byte, error) { return append(dst, r...), nil }

func commitOurs(b *testing.B, s store.Backend, a answer) {
	_, err := s.Commit(context.Background(), store.Tx{
		store.InsertEntry(store.MessageEntry(a.id, a.parent, message.Message(a.message))),
		opState.Set(rawJSON(a.state)),
		leaf.Set(rawJSON(a.leaf)),
		store.InsertUsage(store.NewUsage{ID: a.usageID, EntryID: a.id, RawUsage: []byte(a.usage)}),
		frames.Delete(),
	})
	if err != nil {
		b.Fatal(err)
	}
}

// cStore runs the statements of one drover commit, in its order.
type cStore struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

const (
	sqlOwn         = `UPDATE writer_lease SET owner_id = 'c', fence = 1`
	sqlBase        = `SELECT s.next_seq, s.newest_timestamp FROM writer_lease l CROSS JOIN session s WHERE l.owner_id = ?1 AND l.fence = ?2`
	sqlInsertEntry = `INSERT INTO entries(id, parent_id, seq, type, custom_type, timestamp, payload)
	VALUES(?1, nullif(?2, ''), ?3, ?4, nullif(?5, ''), ?6, CAST(?7 AS TEXT))`
	sqlGrow = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type)
	SELECT branch_id, ?1, ?2, ?3 FROM branch_meta WHERE tip_entry_id = ?4`
	sqlMoveTip    = `UPDATE branch_meta SET tip_entry_id = ?1, tip_seq = ?2 WHERE tip_entry_id = ?3`
	sqlNewRow     = `INSERT INTO branch_entries(branch_id, entry_id, entry_seq, entry_type) VALUES(?1, ?2, ?3, ?4)`
	sqlNewSegment = `INSERT INTO branch_meta(branch_id, tip_entry_id, tip_seq, base_branch_id, base_seq)
	VALUES(?1, ?2, ?3, nullif(?4, ''), nullif(?5, 0))`
	sqlSetValue = `INSERT INTO scalar_values(namespace, key, seq, value) VALUES(?1, ?2, ?3, CAST(?4 AS TEXT))
	ON CONFLICT(namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value`
	sqlInsertUsage = `INSERT INTO usage_ledger(id, seq, entry_id, adjustment, usage, details)
	VALUES(?1, ?2, nullif(?3, ''), ?4, CAST(?5 AS TEXT), CAST(?6 AS TEXT))`
	sqlDeleteList = `DELETE FROM list_values WHERE namespace = ?1 AND key = ?2`
	sqlAdvance    = `UPDATE session SET next_seq = ?1, newest_timestamp = ?2, message_count = ?3, usage_payload = CAST(?4 AS TEXT)`
)

func openC(b *testing.B, path string) *cStore {
	b.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=rw&_busy_timeout=5000&_journal_mode=WAL&_synchronous=NORMAL&_cache_size=-16000")
	if err != nil {
		b.Fatal(err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	c := &cStore{db: db, conn: conn, stmts: map[string]*sql.Stmt{}}
	c.exec(b, `PRAGMA wal_autocheckpoint = 2000`)
	c.exec(b, sqlOwn)
	return c
}

func (c *cStore) close() {
	for _, s := range c.stmts {
		s.Close()
	}
	c.conn.Close()
	c.db.Close()
}

func (c *cStore) stmt(b *testing.B, text string) *sql.Stmt {
	s, ok := c.stmts[text]
	if !ok {
		var err error
		if s, err = c.conn.PrepareContext(context.Background(), text); err != nil {
			b.Fatal(err)
		}
		c.stmts[text] = s
	}
	return s
}

func (c *cStore) exec(b *testing.B, text string, args ...any) {
	if _, err := c.stmt(b, text).ExecContext(context.Background(), args...); err != nil {
		b.Fatalf("%s: %v", text, err)
	}
}

func (c *cStore) row(b *testing.B, text string, args []any, dest ...any) {
	err := c.stmt(b, text).QueryRowContext(context.Background(), args...).Scan(dest...)
	if err != nil && err != sql.ErrNoRows {
		b.Fatalf("%s: %v", text, err)
	}
}

func (c *cStore) commit(b *testing.B, a answer, seq int64) {
	const assistant = "message"
	payload := []byte(`{"message":` + a.message + `}`)
	now := time.Now().UnixMilli()
	var next, newest int64
	c.exec(b, `BEGIN IMMEDIATE`)
	c.row(b, sqlBase, []any{"c", int64(1)}, &next, &newest)
	c.exec(b, sqlInsertEntry, a.id, a.parent, seq, assistant, "", now, payload)
	if a.parent != "" {
		c.exec(b, sqlGrow, a.id, seq, assistant, a.parent)
		c.exec(b, sqlMoveTip, a.id, seq, a.parent)
	} else {
		c.exec(b, sqlNewRow, "1", a.id, seq, assistant)
		c.exec(b, sqlNewSegment, "1", a.id, seq, "", 0)
	}
	c.exec(b, sqlSetValue, "pi.op.state", "op_9", seq+1, []byte(a.state))
	c.exec(b, sqlSetValue, "pi.lane.leaf", "main", seq+2, []byte(a.leaf))
	c.exec(b, sqlInsertUsage, a.usageID, seq+3, a.id, false, []byte(a.usage), nil)
	c.exec(b, sqlDeleteList, "pi.pending.assistant_frame", "op_9:e_51")
	c.exec(b, sqlAdvance, seq+5, now, seq/5, []byte(a.usage))
	c.exec(b, `COMMIT`)
}
