package cli

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// BenchmarkRewrite takes one text out of a session of about 100 MB, the whole
// command from the opening to the last proof. Its yardstick is a copy that is
// durable and one check: of JSONL cp, fsync of file and folder, and verify; of
// SQLite VACUUM INTO and integrity_check.
func BenchmarkRewrite(b *testing.B) {
	for _, c := range []struct {
		d         store.Driver
		yardstick func(path string) error
	}{{jsonl.Driver{}, copyAndVerify}, {sqlite.Driver{}, vacuumAndCheck}} {
		b.Run(c.d.Name(), func(b *testing.B) {
			dir := b.TempDir()
			path, err := bulk.Build(b.Context(), c.d, dir, bulk.Shape{ID: "s", Entries: 90_000})
			if err != nil {
				b.Fatal(err)
			}
			rules, turn := filepath.Join(b.TempDir(), "rules"), 0
			ours := func() error {
				turn++
				rule := fmt.Sprintf("%d The drover walks ==> Nobody walks\n", 40_000+2*turn)
				if err := os.WriteFile(rules, []byte(rule), 0o600); err != nil {
					return err
				}
				var out, errs bytes.Buffer
				f := newFactory([]string{"HOME=/", "DROVER_REPO=" + dir}, newStreams(strings.NewReader(""), &out, &errs))
				if code := run(f, []string{"rewrite", "s", "--redact-file", rules}); code != exitOK {
					return fmt.Errorf("exit code %d: %s", code, errs.String())
				}
				if !strings.Contains(out.String(), "rewritten") {
					return errors.New("nothing was rewritten")
				}
				return nil
			}
			yardstick := func() error { return c.yardstick(path) }
			// The first turn would pay for what the building has left to be written.
			if err := errors.Join(ours(), yardstick()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(versus(b, ours, yardstick), "times")
		})
	}
}

func copyAndVerify(path string) error {
	to := path + ".copy"
	defer os.Remove(to)
	if err := durableCopy(path, to); err != nil {
		return err
	}
	return verifyOne(jsonl.Driver{}, to)
}

func durableCopy(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func vacuumAndCheck(path string) error {
	to := path + ".copy"
	defer os.Remove(to)
	if err := onDatabase(path, "VACUUM INTO '"+to+"'"); err != nil {
		return err
	}
	return onDatabase(to, "PRAGMA integrity_check")
}

func onDatabase(path, statement string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	rows, err := db.Query(statement)
	if err == nil {
		for rows.Next() {
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	return errors.Join(err, db.Close())
}
