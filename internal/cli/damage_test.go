package cli

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// What scripts do to a session by hand.

// sql FILE STATEMENT [WANT]: changes a database behind drover's back, or wants one
// answer of it.
func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: sql FILE STATEMENT [WANT]")
	}
	got, err := query(ts.MkAbs(args[0]), args[1])
	ts.Check(err)
	if len(args) == 3 && got != args[2] {
		ts.Fatalf("%s is %q, want %q", args[1], got, args[2])
	}
}

// query returns the first column of the last row, if any.
func query(path, statement string) (got string, err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(statement)
	if err != nil {
		return "", err
	}
	for rows.Next() {
		if err := rows.Scan(&got); err != nil {
			return "", err
		}
	}
	return got, errors.Join(rows.Err(), rows.Close())
}

// cutoff FILE N: takes the last N bytes away.
func cmdCutOff(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cutoff FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()-int64(n)))
}

// badpage FILE TABLE: overwrites the root page of a table.
func cmdBadPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: badpage FILE TABLE")
	}
	path := ts.MkAbs(args[0])
	at, err := query(path, fmt.Sprintf(`SELECT (rootpage - 1) * page_size FROM sqlite_schema, pragma_page_size WHERE name = '%s'`, args[1]))
	ts.Check(err)
	offset, err := strconv.ParseInt(at, 10, 64)
	ts.Check(err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(make([]byte, 64), offset)
	ts.Check(errors.Join(err, f.Close()))
}

// age FILE: nobody has touched the file for two hours.
func cmdAge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: age FILE")
	}
	path := ts.MkAbs(args[0])
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Chtimes(path, time.Time{}, info.ModTime().Add(-2*time.Hour)))
}
