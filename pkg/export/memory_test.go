package export_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// gauge measures now and then how much is alive while something is written.
type gauge struct {
	every, written, since int
	most                  uint64
}

func (g *gauge) Write(p []byte) (int, error) {
	g.written += len(p)
	if g.since += len(p); g.since >= g.every {
		g.since = 0
		g.most = max(g.most, alive())
	}
	return len(p), nil
}

func alive() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Memory follows the number of entries, not what they hold.
func TestMemory(t *testing.T) {
	const entries, text = 1_000, 20_000
	path, err := bulk.Build(t.Context(), jsonl.Driver{}, t.TempDir(), bulk.Shape{ID: "s", Entries: entries, Text: text})
	if err != nil {
		t.Fatal(err)
	}
	r, err := jsonl.Driver{}.View(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, write := range map[string]func(*export.Source, io.Writer) error{
		"pi-v3":    func(s *export.Source, w io.Writer) error { _, err := s.PiV3(t.Context(), w); return err },
		"html":     func(s *export.Source, w io.Writer) error { return s.Document(t.Context(), export.HTML(w)) },
		"markdown": func(s *export.Source, w io.Writer) error { return s.Document(t.Context(), export.Markdown(w)) },
		"json": func(s *export.Source, w io.Writer) error {
			return s.Each(t.Context(), func(e store.Entry) bool { _, err := w.Write(e.Payload); return err == nil })
		},
	} {
		for _, all := range []bool{false, true} {
			s := open(t, r, export.Options{AllBranches: all})
			before := alive()
			g := &gauge{every: entries * text / 10}
			if err := write(s, g); err != nil {
				t.Fatal(err)
			}
			if g.written < entries*text*8/10 {
				t.Errorf("%s: only %d bytes written", name, g.written)
			}
			if grown := int64(g.most) - int64(before); grown > entries*text/5 {
				t.Errorf("%s, all branches %t: %d of %d bytes were alive", name, all, grown, g.written)
			}
		}
	}
}
