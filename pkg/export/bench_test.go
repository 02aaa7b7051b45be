package export_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/v3import"
)

// BenchmarkPiV3 writes a session of 100 MB as a legacy file, from opening it to
// the last byte, in turns with its yardstick: a pass over the same session file
// that looks at nothing but the structure. "of-jsontext" is the relation of their
// speeds.
func BenchmarkPiV3(b *testing.B) {
	for name, make := range map[string]func(*testing.B) string{"real": realSession, "made": madeSession} {
		b.Run(name, func(b *testing.B) {
			path := make(b)
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			var ours, theirs time.Duration
			for b.Loop() {
				begun := time.Now()
				exportFile(b, path)
				ours += time.Since(begun)
				b.StopTimer()
				begun = time.Now()
				structurePass(b, path)
				theirs += time.Since(begun)
				b.StartTimer()
			}
			b.ReportMetric(float64(theirs)/float64(ours), "of-jsontext")
		})
	}
}

func exportFile(b *testing.B, path string) {
	r, err := jsonl.Driver{}.View(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	s, err := export.Open(b.Context(), r, export.Options{})
	if err != nil {
		b.Fatal(err)
	}
	out, err := os.Create(filepath.Join(b.TempDir(), "out.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	report, err := s.PiV3(b.Context(), out)
	if err != nil || report.Entries == 0 {
		b.Fatal(report, err)
	}
	if err := errors.Join(out.Close(), s.Close(), r.Close(), os.Remove(out.Name())); err != nil {
		b.Fatal(err)
	}
}

func structurePass(b *testing.B, path string) {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	d := jsontext.NewDecoder(f)
	for err = d.SkipValue(); err == nil; err = d.SkipValue() {
	}
	if !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
}

// realSession repeats a real session of 2.4 MB, with its compactions.
func realSession(b *testing.B) string {
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "v3", "01-v1-before-compaction.jsonl"))
	if err != nil {
		b.Skipf("no real session file: %v", err)
	}
	header, entries, _ := bytes.Cut(source, []byte("\n"))
	path := filepath.Join(b.TempDir(), "big.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	text := bufio.NewWriter(f)
	_, _ = text.Write(append(header, '\n')) // the flush tells
	for moved, size := int64(0), 0; size < 100_000_000; size += len(entries) {
		for line := range bytes.Lines(entries) {
			if first, ok := rawjson.GetInt(line, "firstKeptEntryIndex"); ok {
				if line, err = rawjson.Set(line, "firstKeptEntryIndex", strconv.AppendInt(nil, first+moved, 10)); err != nil {
					b.Fatal(err)
				}
			}
			_, _ = text.Write(line)
		}
		moved += int64(bytes.Count(entries, []byte("\n")))
	}
	if err := errors.Join(text.Flush(), f.Close()); err != nil {
		b.Fatal(err)
	}
	s, err := v3import.Read(b.Context(), path, v3import.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	out := filepath.Join(b.TempDir(), "session.jsonl")
	if err := (jsonl.Driver{}).Build(b.Context(), out, s.Snapshot(), store.BuildOptions{NoSync: true}); err != nil {
		b.Fatal(err)
	}
	return out
}

// madeSession has 100,000 entries of 1 KB.
func madeSession(b *testing.B) string {
	dir := b.TempDir()
	if err := bulk.Fill(b.Context(), jsonl.Driver{}, dir, 1, bulk.Shape{ID: "made", Entries: 100_000}); err != nil {
		b.Fatal(err)
	}
	found, err := jsonl.Driver{}.List(b.Context(), dir)
	if err != nil || len(found) != 1 {
		b.Fatal(found, err)
	}
	return found[0]
}
