package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/enginetest"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// A long run leaves its conversation, its ledger and the lane's values, and
// nothing that it needed on the way; a compacted file holds a line for each of
// them, and no other (spec §1.8, §3.13).
func TestRunLeavesNothingBehind(t *testing.T) {
	const turns = 30
	dir := t.TempDir()
	w := enginetest.NewWorld(t, &jsonl.Driver{}, dir)
	*w.Pace = enginetest.Free
	w.Tools(filepath.Join(t.TempDir(), "ran"), &enginetest.Tool{Name: "look"}, &enginetest.Tool{Name: "work"})
	w.Model.Reply = func(n int, _ effect.Request) enginetest.Reply {
		if n > turns {
			return enginetest.Say("all ", "done")
		}
		return enginetest.Ask(enginetest.Call(fmt.Sprint("a", n), "look", `{}`), enginetest.Call(fmt.Sprint("b", n), "work", `{"n":1}`))
	}
	w.Open()
	if err := w.Lane.Configure(t.Context(), engine.Configure{ActiveToolNames: &[]string{"look", "work"}}); err != nil {
		t.Fatal(err)
	}
	if d := w.Prompt("go"); d.Outcome.Kind != op.Completed {
		t.Fatalf("the run ended as %s", d.Outcome.Kind)
	}

	want := map[string]int{
		"entry message":           1 + turns*3 + 1,
		"usage":                   turns + 1,
		"pi.lane.leaf/main":       1,
		"pi.lane.config/main":     1,
		"pi.lane.state/main":      1,
		"pi.lane.lastResult/main": 1,
	}
	records := w.Records()
	enginetest.Equal(t, "what the run left", tally(records), want)

	w.Close()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	compactFile(t, files[0])
	enginetest.Equal(t, "what the compacted session holds", tally(w.Records()), want)
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
	enginetest.Equal(t, "lines of the file: a header and the records", len(lines), 1+len(records))
}

func compactFile(t *testing.T, path string) {
	t.Helper()
	b, err := (&jsonl.Driver{}).Open(t.Context(), path, store.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.(store.Compacter).Compact(t.Context(), store.CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func tally(records []store.Record) map[string]int {
	n := make(map[string]int)
	for _, r := range records {
		switch {
		case r.Entry != nil:
			n["entry "+string(r.Entry.Type)]++
		case r.Kind == store.KindUsage:
			n["usage"]++
		default:
			n[r.Address.String()]++
		}
	}
	return n
}
