package search

import (
	"context"
	"database/sql"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// Query is a question. Text is as the person typed it: words that all have to occur,
// in any order, or an expression of FTS5; Limit 0 is none.
type Query struct {
	Text  string
	Limit int
}

// Hit is an entry that matches.
type Hit struct {
	SessionID string
	Name      string // of the session, when it was last synced
	EntryID   string
	Seq       int64
	Timestamp int64   // Unix ms
	Score     float64 // above 0; the higher the better the match (bm25)
	Snippet   []Piece
}

// Piece is a part of a snippet, in one line.
type Piece struct {
	Text  string
	Match bool // what was looked for
}

// Text is the snippet without marks.
func (h Hit) Text() string {
	var b strings.Builder
	for _, p := range h.Snippet {
		b.WriteString(p.Text)
	}
	return b.String()
}

// The matches are materialized: rank can be asked for only where they are found.
const (
	sqlHits = `WITH hits AS MATERIALIZED (SELECT rowid AS id, rank AS score FROM texts WHERE texts MATCH ?) `
	sqlFind = sqlHits + `SELECT h.id, h.score, s.session_id, s.name, e.entry_id, e.seq, e.timestamp
		FROM hits h JOIN entries e ON e.id = h.id JOIN sessions s ON s.id = e.session
		ORDER BY h.score, e.timestamp DESC, h.id LIMIT ?`
	// With min, SQLite takes the other columns from the row that has it.
	sqlFindSessions = sqlHits + `SELECT h.id, min(h.score) AS best, s.session_id, s.name, e.entry_id, e.seq, e.timestamp
		FROM hits h JOIN entries e ON e.id = h.id JOIN sessions s ON s.id = e.session
		GROUP BY e.session ORDER BY best, e.timestamp DESC, h.id LIMIT ?`
	sqlSnippet = `SELECT snippet(texts, 0, ?, ?, '…', 24) FROM texts WHERE texts MATCH ? AND rowid = ?`
)

// Sessions returns the best hit of every session that has one, the best session
// first. It fails with *SyntaxError.
func (x *Index) Sessions(ctx context.Context, q Query) ([]Hit, error) {
	return x.find(ctx, sqlFindSessions, q)
}

// Entries returns the hits, the best first. It fails with *SyntaxError.
func (x *Index) Entries(ctx context.Context, q Query) ([]Hit, error) {
	return x.find(ctx, sqlFind, q)
}

func (x *Index) find(ctx context.Context, statement string, q Query) (hits []Hit, err error) {
	match, err := compile(q.Text)
	if err != nil {
		return nil, err
	}
	if q.Limit <= 0 {
		q.Limit = -1 // none, to SQLite
	}
	var rows []int64
	err = x.conn.read(func() error {
		err := x.conn.each(ctx, statement, []any{match, q.Limit}, func(r *sql.Rows) error {
			var h Hit
			var row int64
			err := r.Scan(&row, &h.Score, &h.SessionID, &h.Name, &h.EntryID, &h.Seq, &h.Timestamp)
			h.Score = -h.Score
			hits, rows = append(hits, h), append(rows, row)
			return err
		})
		for i := range hits {
			if err == nil {
				err = context.Cause(ctx)
			}
			if err == nil {
				hits[i].Snippet, err = x.snippet(match, rows[i])
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

func (x *Index) snippet(match string, row int64) ([]Piece, error) {
	var text string
	if _, err := x.conn.row(sqlSnippet, []any{matchBegins, matchEnds, match, row}, &text); err != nil {
		return nil, err
	}
	return pieces(text), nil
}

// pieces takes a marked snippet apart and puts it into one line.
func pieces(text string) []Piece {
	var all []Piece
	text = strings.Join(strings.Fields(text), " ")
	add := func(s string, match bool) {
		if s != "" {
			all = append(all, Piece{s, match})
		}
	}
	for text != "" {
		before, rest, _ := strings.Cut(text, matchBegins)
		match, after, _ := strings.Cut(rest, matchEnds)
		add(before, false)
		add(match, true)
		text = after
	}
	return all
}

// OnLeafPath tells whether the entry of a hit is on the path of a lane's leaf, and
// not on a branch that was left.
func OnLeafPath(ctx context.Context, q store.Queries, h Hit) (bool, error) {
	leaves, err := store.Scan(ctx, q, store.LaneLeaves())
	if err != nil {
		return false, err
	}
	for _, leaf := range leaves {
		if leaf.Value == "" {
			continue
		}
		// Sequence numbers fall along a path: what comes first below the hit's
		// successor is the hit, or the path does not have it.
		path, err := q.ScanBranchStructure(ctx, store.BranchQuery{Start: string(leaf.Value), Cursor: h.Seq + 1, Limit: 1})
		if err != nil {
			return false, err
		}
		if len(path) == 1 && path[0].ID == h.EntryID {
			return true, nil
		}
	}
	return false, nil
}
