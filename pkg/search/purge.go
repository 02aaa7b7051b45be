package search

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Remove takes a session out of the index; one that is not in it is no error.
func (x *Index) Remove(ctx context.Context, sessionID string) error {
	return x.conn.write(ctx, func() error { return x.conn.remove(sessionID) })
}

func (c *conn) remove(sessionID string) error {
	var k known
	ok, err := c.row(sqlSession, []any{sessionID}, &k.id, &k.generation, &k.cursor, &k.cursorEntry, &k.stamp)
	if err != nil || !ok {
		return err
	}
	if err := c.forget(k.id); err != nil {
		return err
	}
	_, err = c.exec(sqlDropRow, k.id)
	return err
}

// Clear takes every session out of the index.
func (x *Index) Clear(ctx context.Context) error {
	return x.conn.write(ctx, func() error {
		for _, s := range []string{`INSERT INTO texts(texts) VALUES('delete-all')`, `DELETE FROM entries`, `DELETE FROM sessions`} {
			if _, err := x.conn.exec(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// Purge is Remove that leaves no byte of the session's text behind, in free pages, in
// segments of the index or in its log (D53). It fails, with an error that wraps EBUSY,
// when a reader of another process keeps the log from being emptied; purging again
// is always legal. It takes as long as copying the whole index.
func (x *Index) Purge(ctx context.Context, sessionID string) error {
	c := x.conn
	if err := c.script("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	err := c.write(ctx, func() error {
		if _, err := c.exec(`INSERT INTO texts(texts, rank) VALUES('secure-delete', 1)`); err != nil {
			return err
		}
		if err := c.remove(sessionID); err != nil {
			return err
		}
		// Ordinary removals wait for a merge before their words go.
		_, err := c.exec(`INSERT INTO texts(texts) VALUES('optimize')`)
		return errors.Join(err, c.plainDeletes())
	})
	if err == nil {
		err = c.script("VACUUM")
	}
	if err == nil {
		err = c.emptyLog()
	}
	return err
}

// plainDeletes makes the removals of later syncs fast again.
func (c *conn) plainDeletes() error {
	_, err := c.exec(`INSERT INTO texts(texts, rank) VALUES('secure-delete', 0)`)
	return err
}

func (c *conn) emptyLog() error {
	var busy, logged, moved int64
	if _, err := c.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &logged, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return fmt.Errorf("search index %s: another process reads it, and its log cannot be emptied: %w", c.path, syscall.EBUSY)
	}
	return nil
}

// Holding is where a text occurs in an index.
type Holding struct {
	// Sessions are the ids of those with an entry that holds it, in byte order. ASCII
	// letters count as equal in both cases: that is how words are indexed.
	Sessions []string
	// Files are those of the index in whose bytes it occurs, dead ones included.
	// Without Sessions there must be none.
	Files []string
}

// telling is how many bytes a text has at least for its occurrence in a file to say
// something: shorter ones occur among the numbers of any index.
const telling = 4

// Holds looks for a text: the proof of a Purge (D53). It reads the whole index. A text
// of less than 4 bytes is looked for in the rows only.
func (x *Index) Holds(ctx context.Context, text string) (h Holding, err error) {
	text = indexable(text)
	err = x.conn.each(ctx, `SELECT session_id FROM sessions s WHERE EXISTS
		(SELECT 1 FROM entries e WHERE e.session = s.id AND instr(lower(e.text), lower(?))) OR instr(lower(s.name), lower(?)) ORDER BY 1`, []any{text, text},
		func(r *sql.Rows) error {
			var id string
			err := r.Scan(&id)
			h.Sessions = append(h.Sessions, id)
			return err
		})
	if err != nil || len(text) < telling {
		return h, err
	}
	for _, path := range files(x.conn.path) {
		switch found, err := fileHolds(ctx, path, []byte(text)); {
		case err != nil:
			return h, err
		case found:
			h.Files = append(h.Files, path)
		}
	}
	return h, nil
}

// fileHolds looks for the bytes in a file; one that is not there holds nothing.
func fileHolds(ctx context.Context, path string, needle []byte) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("search the index's bytes: %w", err)
	}
	defer f.Close()
	buf := make([]byte, len(needle)+1<<20)
	for kept := 0; ; {
		n, err := io.ReadFull(f, buf[kept:])
		text := buf[:kept+n]
		switch {
		case bytes.Contains(text, needle):
			return true, nil
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("search the index's bytes: %w", err)
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		}
		// The needle may begin in what was read and end in what comes.
		kept = copy(buf, text[max(len(text)-len(needle), 0):])
	}
}
