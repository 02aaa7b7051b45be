package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-run/drover/internal/bulk"
)

// BenchmarkImport imports 500 session files of the coding agent. Its yardstick looks
// at nothing but the structure of each file, and writes its bytes into a new one
// with the fsyncs that a session gets.
func BenchmarkImport(b *testing.B) {
	dir := b.TempDir()
	paths, size, err := bulk.FillLegacy(dir, 500)
	if err != nil {
		b.Fatal(err)
	}
	for _, backend := range []string{"jsonl", "sqlite"} {
		b.Run(backend, func(b *testing.B) {
			b.SetBytes(size)
			into := b.TempDir()
			repo, copies := filepath.Join(into, "repo"), filepath.Join(into, "copies")
			ours := func() error {
				if err := os.RemoveAll(repo); err != nil {
					return err
				}
				return command(repo, "import-v3", dir, "--backend", backend, "--json")
			}
			yardstick := func() error {
				if err := errors.Join(os.RemoveAll(copies), os.Mkdir(copies, 0o700)); err != nil {
					return err
				}
				for _, path := range paths {
					if err := passAndCopy(path, filepath.Join(copies, filepath.Base(path))); err != nil {
						return err
					}
				}
				return nil
			}
			b.ReportMetric(1/versus(b, ours, yardstick), "of-jsontext-and-copy")
		})
	}
}

// passAndCopy walks through the structure of a file and copies it, file and folder
// synced.
func passAndCopy(src, dst string) error {
	text, err := os.ReadFile(src)
	if err != nil {
		return err
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for err = d.SkipValue(); err == nil; err = d.SkipValue() {
	}
	if err != io.EOF {
		return err
	}
	f, err := os.Create(dst)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(dst))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
