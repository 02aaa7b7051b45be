package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// Salvage reads the tables row by row. The keys come from whatever still has
// them: a table from both of its ends, its indexes from both of theirs, and for
// entries the branch index too. A row behind damaged pages costs itself and no
// other. Of a file that is no database at all nothing is readable.
func (d Driver) Salvage(ctx context.Context, path string) (*store.Salvage, error) {
	h, err := openToSalvage(path)
	if damaged, ok := errors.AsType[*store.Corrupt](err); ok && isFile(path) {
		return nothing(damaged), nil
	}
	if err != nil {
		return nil, err
	}
	s := &salvage{ctx: ctx, h: h}
	out, err := s.open()
	if err == nil {
		err = s.survey()
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	out.Records, out.Close = s.records, h.close
	return out, nil
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// nothing is what can be read of a file that cannot even be opened.
func nothing(damaged *store.Corrupt) *store.Salvage {
	s := &salvage{ctx: context.Background()}
	for _, t := range recordTables() {
		s.lost = append(s.lost, t.incomplete(damaged))
	}
	return &store.Salvage{HeaderLost: damaged.Msg, Records: s.records, Close: func() error { return nil }}
}

// openToSalvage connects to a database of which not even the session row has to
// be readable.
func openToSalvage(path string) (*handle, error) {
	path, _, err := locate(path)
	if err != nil {
		return nil, err
	}
	begin := func(dsn string) (*handle, error) {
		h, err := openHandle(path, dsn)
		if err != nil {
			return nil, err
		}
		var one int
		if _, err = h.exec("BEGIN"); err == nil {
			_, err = h.row("SELECT count(*) FROM sqlite_schema", nil, &one)
		}
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		return h, nil
	}
	h, err := begin(dsnSalvage)
	if holds, walErr := walHolds(path); err != nil && needsFolder(err) && walErr == nil && !holds {
		return begin(dsnSalvage + immutable)
	}
	return h, err
}

// salvage is the reading of one damaged database.
type salvage struct {
	ctx  context.Context
	h    *handle
	keys []rowKey
	lost []store.Loss // of which no row is known
}

func (s *salvage) open() (*store.Salvage, error) {
	row, err := s.h.session()
	damaged, lost := errors.AsType[*store.Corrupt](err)
	switch {
	case lost:
		return &store.Salvage{HeaderLost: damaged.Msg}, nil
	case err != nil:
		return nil, err
	}
	row.header.NextSeq = row.nextSeq
	return &store.Salvage{Header: row.header}, nil
}

// rowKey names a row of one of the tables that hold records.
type rowKey struct {
	table *recordTable
	a, b  string // the id, or namespace and key
	seq   int64
}

func (k rowKey) String() string {
	if k.table.byID {
		return fmt.Sprintf("%s %s, number %d", k.table.name, k.a, k.seq)
	}
	return fmt.Sprintf("%s %s, number %d", k.table.name, store.Address{Namespace: k.a, Key: k.b}, k.seq)
}

// recordTable is a table that holds records. Every source gives two columns of
// the key and the sequence number, and ends in an order that DESC turns round.
type recordTable struct {
	name    string
	byID    bool
	sources []string
}

// incomplete tells that rows may be lost of which nothing is known.
func (t *recordTable) incomplete(why error) store.Loss {
	return store.Loss{Code: "table", Where: t.name, Message: "rows may be lost that no index knows of: " + inShort(why)}
}

func recordTables() []*recordTable {
	return []*recordTable{
		{"entries", true, []string{
			`SELECT id, '', seq FROM entries NOT INDEXED ORDER BY id`,
			`SELECT id, '', seq FROM entries INDEXED BY ix_entry_seq ORDER BY seq`,
			`SELECT entry_id, '', entry_seq FROM branch_entries NOT INDEXED ORDER BY branch_id`,
		}},
		{"usage_ledger", true, []string{
			`SELECT id, '', seq FROM usage_ledger NOT INDEXED ORDER BY id`,
			`SELECT id, '', seq FROM usage_ledger INDEXED BY ix_usage_seq ORDER BY seq`,
		}},
		{"scalar_values", false, []string{
			`SELECT namespace, key, seq FROM scalar_values NOT INDEXED ORDER BY rowid`,
			`SELECT namespace, key, 0 FROM scalar_values INDEXED BY sqlite_autoindex_scalar_values_1 ORDER BY namespace`,
		}},
		{"list_values", false, []string{
			`SELECT namespace, key, seq FROM list_values ORDER BY namespace`,
		}},
	}
}

// survey collects the keys, and tells which pages SQLite finds damaged.
func (s *salvage) survey() error {
	for _, t := range recordTables() {
		if err := s.surveyTable(t); err != nil {
			return err
		}
	}
	if err := s.number(); err != nil {
		return err
	}
	slices.SortStableFunc(s.keys, func(x, y rowKey) int { return cmp.Compare(x.seq, y.seq) })
	return s.pages()
}

// surveyTable reads every source of a table from its beginning, and from its end
// when it does not come through.
func (s *salvage) surveyTable(t *recordTable) error {
	seen := make(map[rowKey]bool)
	complete := false
	var why error
	for i, source := range t.sources {
		err := s.collect(t, source, seen)
		if err != nil {
			why = err
			_ = s.collect(t, source+" DESC", seen) // what it finds is what counts
		}
		complete = complete || err == nil && i < 2 // a table or an index of all its rows
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
	}
	if !complete {
		s.lost = append(s.lost, t.incomplete(why))
	}
	return nil
}

func (s *salvage) collect(t *recordTable, source string, seen map[rowKey]bool) error {
	return s.h.each(s.ctx, source, nil, func(rows *sql.Rows) (bool, error) {
		k := rowKey{table: t}
		if err := rows.Scan(&k.a, &k.b, &k.seq); err != nil {
			return false, err
		}
		same := k
		if t.name != "list_values" {
			same.seq = 0 // the rest of the key is one row's already
		}
		if !seen[same] {
			seen[same] = true
			s.keys = append(s.keys, k)
		}
		return true, nil
	})
}

// number finds the sequence numbers of rows that only an index without them has.
func (s *salvage) number() error {
	var numbered []rowKey
	for _, k := range s.keys {
		if err := context.Cause(s.ctx); err != nil {
			return err
		}
		if k.seq == 0 && k.table.name == "scalar_values" {
			ok, err := s.h.row(`SELECT seq FROM scalar_values WHERE namespace = ?1 AND key = ?2`, []any{k.a, k.b}, &k.seq)
			if err != nil || !ok {
				s.lost = append(s.lost, k.unreadable(err))
				continue
			}
		}
		numbered = append(numbered, k)
	}
	s.keys = numbered
	return nil
}

func (k rowKey) unreadable(err error) store.Loss {
	l := store.Loss{Code: "row", Where: k.String(), Message: "an index names the row, and it is not there"}
	if err != nil {
		l.Message = inShort(err)
	}
	if k.table.name == "entries" {
		l.EntryID = k.a
	}
	return l
}

// inShort leaves out the file, which whoever salvages has named.
func inShort(err error) string {
	if damaged, ok := errors.AsType[*store.Corrupt](err); ok {
		return damaged.Msg
	}
	return err.Error()
}

// pages keeps what SQLite's own check says of the file.
func (s *salvage) pages() error {
	var found findings
	err := found.integrity(s.ctx, s.h)
	for _, p := range found {
		if strings.HasPrefix(p.Where, "page ") { // what an index lacks is no loss
			s.lost = append(s.lost, store.Loss{Code: "page", Where: p.Where, Message: p.Message})
		}
	}
	if _, damaged := errors.AsType[*store.Corrupt](err); damaged {
		return nil // the check itself did not come through
	}
	return err
}

const (
	sqlValueRow = `SELECT seq, value FROM scalar_values WHERE namespace = ?1 AND key = ?2`
	sqlUsageRow = `SELECT id, seq, ifnull(entry_id, ''), adjustment, usage, details FROM usage_ledger WHERE id = ?1`
	sqlParentOf = `SELECT ifnull(parent_id, '') FROM entries WHERE id = ?1`
	// sqlBranchBefore is the entry below another in the branch index.
	sqlBranchBefore = `SELECT b.entry_id FROM branch_entries b JOIN branch_entries c ON c.branch_id = b.branch_id
	WHERE c.entry_id = ?1 AND b.entry_seq < c.entry_seq ORDER BY b.entry_seq DESC LIMIT 1`
)

// records reads the rows one by one.
func (s *salvage) records(lost func(store.Loss)) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for _, l := range s.lost {
			lost(l)
		}
		for _, k := range s.keys {
			if err := context.Cause(s.ctx); err != nil {
				yield(store.Record{}, err)
				return
			}
			r, ok, err := s.fetch(k)
			if err != nil || !ok {
				l := k.unreadable(err)
				if l.EntryID != "" {
					l.ParentID = s.parent(l.EntryID)
				}
				lost(l)
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// parent asks what is left of a lost entry, then the branch index, where in the
// tree it stood; "" is a root, or unknown.
func (s *salvage) parent(id string) string {
	var parent string
	if ok, err := s.h.row(sqlParentOf, []any{id}, &parent); err == nil && ok {
		return parent
	}
	if _, err := s.h.row(sqlBranchBefore, []any{id}, &parent); err != nil {
		return ""
	}
	return parent
}

func (s *salvage) fetch(k rowKey) (r store.Record, ok bool, err error) {
	switch k.table.name {
	case "entries":
		var e store.Entry
		ok, err = s.h.row(sqlEntry, []any{k.a}, append(fields(&e.Structure), (*[]byte)(&e.Payload))...)
		return store.Record{Kind: store.KindEntry, Seq: e.Seq, Entry: &e}, ok, err
	case "usage_ledger":
		var u store.UsageRow
		err = s.h.each(s.ctx, sqlUsageRow, []any{k.a}, func(rows *sql.Rows) (bool, error) {
			ok = true
			u, err = scanUsage(rows)
			return false, err
		})
		return store.Record{Kind: store.KindUsage, Seq: u.Seq, Usage: &u}, ok, err
	case "scalar_values":
		r = store.Record{Kind: store.KindValue, Op: store.OpSet, Address: store.Address{Namespace: k.a, Key: k.b}}
		ok, err = s.h.row(sqlValueRow, []any{k.a, k.b}, &r.Seq, (*[]byte)(&r.Value))
		return r, ok, err
	}
	r = store.Record{Kind: store.KindList, Op: store.OpAppend, Seq: k.seq, Address: store.Address{Namespace: k.a, Key: k.b}}
	ok, err = s.h.row(sqlElement, []any{k.a, k.b, k.seq}, (*[]byte)(&r.Value))
	return r, ok, err
}
