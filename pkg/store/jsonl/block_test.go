package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/pkg/store"
)

// outcome is all that a load tells.
type outcome struct {
	records   []store.Record
	stats     store.Stats
	size, end int64
	bare      bool
	live      extent
	err       string
}

func loadIn(t interface{ Fatal(...any) }, path string, blockSize int) (o outcome) {
	f, err := fsx.OS{}.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	l, err := loading{size: blockSize}.load(f, path, info.Size())
	if err != nil {
		o.err = err.Error()
		return o
	}
	snap, err := l.state.Snapshot(context.Background())
	if err == nil {
		o.records, err = store.Collect(snap)
	}
	if err == nil {
		o.stats, err = l.state.Stats(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	o.size, o.end, o.bare, o.live = l.size, l.end, l.bare, l.tally.live
	return o
}

const oneHeader = `{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":1}` + "\n"

// However a file is cut into blocks, and whoever decodes them, it says the same:
// records, totals, faults with their lines, and what is torn at its end.
func TestBlocksDoNotShow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		text.WriteString(oneHeader)
		n := rapid.IntRange(0, 40).Draw(t, "lines")
		fault := rapid.IntRange(-60, n).Draw(t, "faulty line")
		for i := range n {
			switch {
			case i == fault:
				text.WriteString(rapid.SampledFrom([]string{
					"\n", "{\n", `[{"kind":"value","op":"set","seq":900,"namespace":"n","key":"k","value":1},{]` + "\n",
					`{"kind":"value","op":"set","seq":1,"namespace":"n","key":"k","value":1}` + "\n",
				}).Draw(t, "fault"))
			case i%3 == 0:
				fmt.Fprintf(&text, `{"kind":"entry","seq":%d,"timestamp":2,"id":"e%d","parentId":%s,"type":"custom","customType":"c","data":"%s"}`+"\n",
					2*i+2, i, parentOf(i), strings.Repeat("x", rapid.IntRange(0, 90).Draw(t, "text")))
			case i%3 == 1:
				fmt.Fprintf(&text, `{"kind":"usage","seq":%d,"id":"u%d","entryId":"e%d","adjustment":false,"usage":{"input":%d}}`+"\n", 2*i+2, i, i-1, i)
			default:
				fmt.Fprintf(&text, `[{"kind":"list","op":"append","seq":%d,"namespace":"n","key":"l","value":%d},`+
					`{"kind":"value","op":"set","seq":%d,"namespace":"n","key":"k%d","value":"v"}]`+"\n", 2*i+2, i, 2*i+3, i%2)
			}
		}
		text.WriteString(rapid.SampledFrom([]string{
			"", `{"kind":"value","op":"set","seq":1000,"namespace":"n","key":"z","value":1}`, `{"kind":"va`,
		}).Draw(t, "tail"))
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		want := loadIn(t, path, 1<<20)
		for _, size := range []int{1, 7, 64, rapid.IntRange(1, 900).Draw(t, "block")} {
			if diff := cmp.Diff(want, loadIn(t, path, size), cmp.AllowUnexported(outcome{}, extent{})); diff != "" {
				t.Fatalf("blocks of %d (-want +got):\n%s", size, diff)
			}
		}
	})
}

func parentOf(i int) string {
	if i == 0 {
		return "null"
	}
	return fmt.Sprintf(`"e%d"`, i-3)
}

// failingAt reads as its file does, up to an offset.
type failingAt struct {
	io.ReaderAt
	limit int64
}

var errRead = errors.New("read failed")

func (f failingAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.limit {
		n, _ := f.ReaderAt.ReadAt(p[:max(0, f.limit-off)], off)
		return n, errRead
	}
	return f.ReaderAt.ReadAt(p, off)
}

// A failure ends the blocks in order, whether it is of the reading or of whoever
// uses them, and nobody is left waiting.
func TestBlocksEndWithAFailure(t *testing.T) {
	text := strings.Repeat(`{"kind":"value","op":"delete","seq":1,"namespace":"n","key":"k"}`+"\n", 100)
	line := len(text) / 100
	for name, c := range map[string]struct {
		limit, stopAfter int // bytes; blocks
		want             error
		lines            int
	}{
		"reading":   {limit: 50*line + 10, stopAfter: 1000, want: errRead, lines: 50},
		"using":     {limit: len(text), stopAfter: 3, want: io.ErrShortBuffer, lines: 6},
		"the first": {limit: 0, stopAfter: 1000, want: errRead},
	} {
		t.Run(name, func(t *testing.T) {
			r := &blockReader{src: failingAt{strings.NewReader(text), int64(c.limit)}, end: int64(len(text)), size: 2*line + 3}
			seen, lines := 0, 0
			err := blocks(r, func(b *block) error {
				lines += len(b.starts)
				if seen++; seen == c.stopAfter {
					return io.ErrShortBuffer
				}
				return b.err
			})
			if !errors.Is(err, c.want) || lines != c.lines {
				t.Errorf("%d lines, %v", lines, err)
			}
		})
	}
}
