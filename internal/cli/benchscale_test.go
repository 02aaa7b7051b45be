package cli

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// Each benchmark runs its yardstick in turns with what it measures, and compares
// their medians.

// versus times one run of each per operation and returns how much longer the
// first one takes.
func versus(b *testing.B, ours, yardstick func() error) (times float64) {
	b.Helper()
	do := [2]func() error{ours, yardstick}
	var took [2][]time.Duration
	for i := 0; b.Loop(); i++ {
		for turn := range 2 {
			which := (i + turn) % 2
			begun := time.Now()
			if err := do[which](); err != nil {
				b.Fatal(err)
			}
			took[which] = append(took[which], time.Since(begun))
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2])
	}
	b.ReportMetric(median(took[0])/1e6, "ours-ms")
	b.ReportMetric(median(took[1])/1e6, "yardstick-ms")
	return median(took[0]) / median(took[1])
}

// benchRepo is a folder of n sessions, old enough for the catalog.
func benchRepo(b *testing.B, d store.Driver, n int, s bulk.Shape) string {
	b.Helper()
	dir := b.TempDir()
	s.CWD = "/home/someone/work"
	if err := bulk.Fill(b.Context(), d, dir, n, s); err != nil {
		b.Fatal(err)
	}
	hourAgo := time.Now().Add(-time.Hour)
	for _, path := range sessionFiles(b, dir) {
		if err := os.Chtimes(path, hourAgo, hourAgo); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

func sessionFiles(b *testing.B, dir string) []string {
	b.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "s-*"))
	if err != nil || len(paths) == 0 {
		b.Fatalf("%d sessions: %v", len(paths), err)
	}
	return paths
}

// command runs one command in this process.
func command(dir string, args ...string) error {
	var stderr bytes.Buffer
	env := []string{"DROVER_REPO=" + dir, "HOME=" + dir}
	if code := Main(args, env, strings.NewReader(""), io.Discard, &stderr); code != 0 {
		return fmt.Errorf("drover %s exits with %d: %s", strings.Join(args, " "), code, &stderr)
	}
	return nil
}

// read4K reads the first 4 KB of each file.
func read4K(paths []string) func() error {
	buf := make([]byte, 4<<10)
	return func() error {
		for _, path := range paths {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			_, err = io.ReadFull(f, buf)
			if err := f.Close(); err != nil {
				return err
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				return err
			}
		}
		return nil
	}
}

// openAndRead opens each database, reads its one row and closes it.
func openAndRead(paths []string) func() error {
	return func() error {
		for _, path := range paths {
			db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
			if err != nil {
				return err
			}
			var messages int64
			err = db.QueryRow(`SELECT message_count FROM session`).Scan(&messages)
			if err := errors.Join(err, db.Close()); err != nil {
				return err
			}
		}
		return nil
	}
}

// BenchmarkList lists 2,000 sessions of six entries.
func BenchmarkList(b *testing.B) {
	shape := bulk.Shape{ID: "s", Entries: 6}
	cold := func(dir string, args ...string) func() error {
		return func() error {
			if err := os.RemoveAll(filepath.Join(dir, ".drover-catalog")); err != nil {
				return err
			}
			return command(dir, args...)
		}
	}
	b.Run("headers cold", func(b *testing.B) {
		dir := benchRepo(b, jsonl.Driver{}, 2000, shape)
		ours := cold(dir, "list", "--json", "--fields", "id,cwd,createdAt", "--sort", "createdAt")
		b.ReportMetric(versus(b, ours, read4K(sessionFiles(b, dir))), "times-4KB")
	})
	b.Run("sqlite cold", func(b *testing.B) {
		dir := benchRepo(b, sqlite.Driver{}, 2000, shape)
		b.ReportMetric(versus(b, cold(dir, "list", "--json"), openAndRead(sessionFiles(b, dir))), "times-open")
	})
	b.Run("warm", func(b *testing.B) {
		dir := benchRepo(b, jsonl.Driver{}, 2000, shape)
		warm := func() error { return command(dir, "list", "--json") }
		if err := warm(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(versus(b, warm, read4K(sessionFiles(b, dir))), "times-4KB")
	})
}

// BenchmarkFork forks a session of 10,000 entries, the whole tree.
func BenchmarkFork(b *testing.B) {
	shape := bulk.Shape{ID: "s", Entries: 10_000}
	for _, c := range []struct {
		driver store.Driver
		name   string
		copy   func(src, dst string) error
	}{
		{jsonl.Driver{}, "times-copy", copySynced},
		{sqlite.Driver{}, "times-vacuum", vacuumSynced},
	} {
		b.Run(c.driver.Name(), func(b *testing.B) {
			dir := benchRepo(b, c.driver, 1, shape)
			src := sessionFiles(b, dir)[0]
			repo, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: drivers()})
			if err != nil {
				b.Fatal(err)
			}
			ref := store.Ref{ID: "s-00000", Path: src, Backend: c.driver.Name()}
			fork := filepath.Join(dir, "fork"+c.driver.Ext())
			ours := func() error {
				if err := remove(fork); err != nil {
					return err
				}
				_, err := repo.Fork(context.Background(), ref, nil, store.ForkOptions{ID: "fork"})
				return err
			}
			copied := filepath.Join(dir, "copy")
			yardstick := func() error {
				if err := remove(copied); err != nil {
					return err
				}
				return c.copy(src, copied)
			}
			b.ReportMetric(versus(b, ours, yardstick), c.name)
		})
	}
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func copySynced(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(dst)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

func vacuumSynced(src, dst string) error {
	db, err := sql.Open("sqlite", "file:"+src+"?mode=ro")
	if err != nil {
		return err
	}
	_, err = db.Exec(`VACUUM INTO ?`, dst)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(out.Sync(), out.Close())
}

// BenchmarkVerify checks a session of about 100 MB; its yardstick asks jsontext
// whether the lines of the JSONL file are JSON.
func BenchmarkVerify(b *testing.B) {
	shape := bulk.Shape{ID: "s", Entries: 73_000}
	lines := sessionFiles(b, benchRepo(b, jsonl.Driver{}, 1, shape))[0]
	info, err := os.Stat(lines)
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		b.Run(d.Name(), func(b *testing.B) {
			path := lines
			if d.Name() != "jsonl" {
				path = sessionFiles(b, benchRepo(b, d, 1, shape))[0]
			}
			b.SetBytes(info.Size())
			times := versus(b, func() error { return verifyOne(d, path) }, func() error { return validLines(lines) })
			b.ReportMetric(1/times, "of-jsontext")
		})
	}
}

func verifyOne(d store.Driver, path string) error {
	ctx := context.Background()
	r, err := store.ViewToVerify(ctx, d, path)
	if err != nil {
		return err
	}
	for p := range store.Verify(ctx, r, engine.Check) {
		err = errors.Join(err, fmt.Errorf("%s: %s", p.Code, p.Message))
	}
	return errors.Join(err, r.Close())
}

func validLines(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		if !jsontext.Value(lines.Bytes()).IsValid() {
			return errors.New("a line is not JSON")
		}
	}
	return lines.Err()
}

// BenchmarkInspectAtAMillion runs the real binary on a SQLite session of a
// million entries; its yardstick is an empty one.
func BenchmarkInspectAtAMillion(b *testing.B) {
	binary := builtBinary(b)
	inspect := func(entries int) func() error {
		dir := benchRepo(b, sqlite.Driver{}, 1, bulk.Shape{ID: "s", Entries: entries, Text: 100})
		return func() error {
			cmd := exec.Command(binary, "inspect", "s-00000")
			cmd.Env = append(os.Environ(), "DROVER_REPO="+dir, "HOME="+dir)
			return cmd.Run()
		}
	}
	b.ReportMetric(versus(b, inspect(1_000_000), inspect(0)), "times-empty")
}
