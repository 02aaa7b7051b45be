package v3import_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/v3import"
)

// repeated writes the entries of a real session of 2.4 MB again and again into
// one file of 100 MB. What a compaction keeps is moved along, so that each copy
// keeps its own records.
func repeated(b *testing.B) (path string, size int64) {
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "v3", "01-v1-before-compaction.jsonl"))
	if err != nil {
		b.Skipf("no real session file: %v", err)
	}
	header, entries, _ := bytes.Cut(source, []byte("\n"))
	path = filepath.Join(b.TempDir(), "big.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	n, _ := w.Write(append(header, '\n'))
	size = int64(n)
	for moved := int64(0); size < 100_000_000; {
		count := int64(0)
		for line := range bytes.Lines(entries) {
			count++
			if first, ok := rawjson.GetInt(line, "firstKeptEntryIndex"); ok {
				if line, err = rawjson.Set(line, "firstKeptEntryIndex", strconv.AppendInt(nil, first+moved, 10)); err != nil {
					b.Fatal(err)
				}
			}
			n, _ := w.Write(line)
			size += int64(n)
		}
		moved += count
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path, size
}

// BenchmarkImport reads a session of 100 MB and writes it into a JSONL store, in
// turns with its yardstick: a pass over the same file that looks at nothing but
// the structure. "of-jsontext" is the relation of their speeds.
func BenchmarkImport(b *testing.B) {
	path, size := repeated(b)
	b.SetBytes(size)
	var ours, theirs time.Duration
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		importFile(b, path, i > 0)
		ours += time.Since(begun)
		b.StopTimer()
		begun = time.Now()
		structurePass(b, path)
		theirs += time.Since(begun)
		b.StartTimer()
	}
	b.ReportMetric(float64(theirs)/float64(ours), "of-jsontext")
}

func importFile(b *testing.B, path string, again bool) {
	b.Helper()
	s, err := v3import.Read(b.Context(), path, v3import.Options{})
	if err != nil {
		b.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(path), "out.jsonl")
	if err := (jsonl.Driver{}).Build(b.Context(), out, s.Snapshot(), store.BuildOptions{Replace: again, NoSync: true}); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func structurePass(b *testing.B, path string) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	d := jsontext.NewDecoder(f)
	for err = d.SkipValue(); err == nil; err = d.SkipValue() {
	}
	if err != io.EOF {
		b.Fatal(err)
	}
}
