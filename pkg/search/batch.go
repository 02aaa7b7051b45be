package search

import (
	"context"

	"github.com/drover-run/drover/pkg/store"
)

// batch is what follows the cursor from of a session, up to the sequence number to.
type batch struct {
	session    string
	generation int64
	name       string
	was        known // when the reader began
	reset      bool  // all that is indexed is of another store
	from, to   int64
	toEntry    string
	rows       []row
	last       bool   // there is no more
	stamp      string // of the last one
}

type row struct {
	entryID   string
	seq       int64
	timestamp int64
	text      string
}

// take adds entries and returns the size of what was read.
func (b *batch) take(entries []store.Entry) (size int64) {
	for _, e := range entries {
		size += int64(len(e.Payload))
		b.to, b.toEntry = e.Seq, e.ID
		if text := entryText(e); text != "" {
			b.rows = append(b.rows, row{e.ID, e.Seq, e.Timestamp, text})
		}
	}
	return size
}

// next is the empty batch after b.
func (b *batch) next() *batch {
	return &batch{session: b.session, generation: b.generation, name: b.name, from: b.to, to: b.to, toEntry: b.toEntry}
}

// A transaction takes so much: enough to make the cost of its own small, and little
// enough not to make other processes wait.
const (
	fullBytes = 8 << 20
	fullRows  = 8192
)

// pending are the batches of the next transaction.
type pending struct {
	batches     []*batch
	bytes, rows int
}

func (p *pending) add(b *batch) {
	p.batches = append(p.batches, b)
	p.rows += len(b.rows) + 1
	for _, r := range b.rows {
		p.bytes += len(r.text)
	}
}

func (p *pending) full() bool { return p.bytes >= fullBytes || p.rows >= fullRows }

const (
	sqlSession    = `SELECT id, generation, cursor, cursor_entry, stamp FROM sessions WHERE session_id = ?`
	sqlNewSession = `INSERT INTO sessions(session_id, generation, cursor, cursor_entry, stamp, name) VALUES(?, ?, 0, '', '', '')`
	sqlAdvance    = `UPDATE sessions SET generation = ?, cursor = ?, cursor_entry = ?, stamp = ?, name = ? WHERE id = ?`
	sqlNextRow    = `SELECT coalesce(max(id), 0) + 1 FROM entries`
	sqlEntry      = `INSERT INTO entries(id, session, seq, timestamp, entry_id, text) VALUES(?, ?, ?, ?, ?, ?)`
	sqlTexts      = `INSERT INTO texts(rowid, text) SELECT id, text FROM entries WHERE id >= ?`
	sqlForget     = `INSERT INTO texts(texts, rowid, text) SELECT 'delete', id, text FROM entries WHERE session = ?`
	sqlDrop       = `DELETE FROM entries WHERE session = ?`
	sqlDropRow    = `DELETE FROM sessions WHERE id = ?`
)

// apply indexes batches and moves their cursors in one transaction. It returns how
// many entries it added.
func (x *Index) apply(ctx context.Context, batches []*batch) (added int, err error) {
	w := writer{conn: x.conn}
	err = x.conn.write(ctx, func() error {
		for _, b := range batches {
			if err := w.batch(b); err != nil {
				return err
			}
		}
		if w.added == 0 {
			return nil
		}
		_, err := x.conn.exec(sqlTexts, w.first)
		return err
	})
	if err != nil {
		return 0, err
	}
	return w.added, nil
}

// writer is one transaction of apply.
type writer struct {
	*conn
	first, next int64 // ids of new rows, 0 while there are none
	added       int
}

// batch indexes what of a batch is new. One that does not follow on the cursor was
// overtaken by another process, which knows better, or will: the session has no
// stamp then, or not this one, and is read again.
func (w *writer) batch(b *batch) error {
	now, err := w.session(b)
	if err != nil || now.generation != b.generation || now.cursor < b.from {
		return err
	}
	for _, r := range b.rows {
		if r.seq <= now.cursor {
			continue
		}
		if err := w.insert(now.id, r); err != nil {
			return err
		}
	}
	if b.to > now.cursor {
		now.cursor, now.cursorEntry = b.to, b.toEntry
	}
	if b.last {
		now.stamp = b.stamp
	}
	_, err = w.exec(sqlAdvance, now.generation, now.cursor, now.cursorEntry, now.stamp, b.name, now.id)
	return err
}

// session finds where the index stands, and lets a batch that is a beginning begin.
func (w *writer) session(b *batch) (now known, err error) {
	ok, err := w.row(sqlSession, []any{b.session}, &now.id, &now.generation, &now.cursor, &now.cursorEntry, &now.stamp)
	if err != nil {
		return now, err
	}
	switch {
	case !ok && b.from == 0:
		if _, err := w.exec(sqlNewSession, b.session, b.generation); err != nil {
			return now, err
		}
		_, err := w.row(sqlSession, []any{b.session}, &now.id, &now.generation, &now.cursor, &now.cursorEntry, &now.stamp)
		return now, err
	case ok && b.reset && now == b.was:
		if err := w.forget(now.id); err != nil {
			return now, err
		}
		return known{id: now.id, generation: b.generation}, nil
	}
	return now, nil
}

func (w *writer) insert(session int64, r row) error {
	if w.first == 0 {
		if _, err := w.row(sqlNextRow, nil, &w.first); err != nil {
			return err
		}
		w.next = w.first
	}
	if _, err := w.exec(sqlEntry, w.next, session, r.seq, r.timestamp, r.entryID, r.text); err != nil {
		return err
	}
	w.next++
	w.added++
	return nil
}

// forget takes a session's entries out of the index.
func (c *conn) forget(session int64) error {
	if _, err := c.exec(sqlForget, session); err != nil {
		return err
	}
	_, err := c.exec(sqlDrop, session)
	return err
}
