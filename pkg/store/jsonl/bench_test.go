package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-run/drover/internal/bulk"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/storetest"
)

// Each benchmark runs its yardstick in turns with what it measures and reports
// the relation as "of-bare" or "of-jsontext": 1 is as fast, more is faster.

// batch is how many operations are timed at a time.
const batch = 1000

// againstWrites times do, which makes n commits, in turns with bare writes of
// the very lines that it appended to the file at path.
func againstWrites(b *testing.B, path string, do func(n int)) {
	b.Helper()
	bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	session, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Seek(0, io.SeekEnd); err != nil {
		b.Fatal(err)
	}
	var ours, theirs time.Duration
	var lines [][]byte
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += batch {
		n := min(batch, b.N-done)
		begun := time.Now()
		do(n)
		ours += time.Since(begun)

		b.StopTimer()
		appended, err := io.ReadAll(session)
		if err != nil {
			b.Fatal(err)
		}
		// A batch that ended with a compaction left no lines here; those of the one
		// before are as long.
		if len(appended) > 0 {
			lines = bytes.SplitAfter(appended, []byte("\n"))
		}
		begun = time.Now()
		for _, l := range lines[:n] {
			if _, err := bare.Write(l); err != nil {
				b.Fatal(err)
			}
		}
		theirs += time.Since(begun)
		b.StartTimer()
	}
	b.ReportMetric(float64(theirs)/float64(ours), "of-bare")
	b.ReportMetric(float64(theirs.Nanoseconds())/float64(b.N), "bare-ns/op")
}

// BenchmarkCommit is one value of 300 bytes per commit.
func BenchmarkCommit(b *testing.B) {
	path := fresh(b)
	s := open(b, path)
	value := raw(`{"phase":"assistant","text":"` + strings.Repeat("x", 300-len(`{"phase":"assistant","text":""}`)) + `"}`)
	state := store.NewValue[rawJSON]("pi.op.state", "018bcfe5-6800-7000-8000-000000000000")
	ctx := context.Background()
	againstWrites(b, path, func(n int) {
		for range n {
			if _, err := s.Commit(ctx, store.Tx{state.Set(value)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFrame is one 60-byte delta per commit, through a session's lane line,
// without waiting for any but the last. A settlement deletes the list after every
// thousand.
func BenchmarkFrame(b *testing.B) {
	path := fresh(b)
	s := store.NewSession(open(b, path), store.SessionOptions{})
	delta := raw(`{"type":"text_delta","contentIndex":0,"delta":"` + strings.Repeat("d", 60-len(`{"type":"text_delta","contentIndex":0,"delta":""}`)) + `"}`)
	frames := store.NewList[rawJSON]("pi.pending.assistant_frame", "018bcfe5-6800-7000-8000-000000000000:018bcfe5-6800-7000-8000-000000000001")
	againstWrites(b, path, func(n int) {
		var last *store.Ticket
		for i := range n {
			write := frames.Append(delta)
			if i == batch-1 {
				write = frames.Delete()
			}
			last = s.Enqueue(store.MainLane, func(m *store.Mutator) error {
				_, err := m.Commit(store.Tx{write})
				return err
			})
		}
		if err := last.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkScale(b *testing.B) {
	storetest.Scale(b, func(t testing.TB) (store.Driver, string) { return jsonl.Driver{}, t.TempDir() })
}

// bigSession builds a session of n message entries of about 1 KB.
func bigSession(b testing.TB, n int) string {
	b.Helper()
	path, err := bulk.Build(context.Background(), jsonl.Driver{}, b.TempDir(), bulk.Shape{ID: "big", Entries: n, Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// structurePass is the yardstick of reading: jsontext's decoder skips every
// value of the file.
func structurePass(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d := jsontext.NewDecoder(f)
	for {
		if err := d.SkipValue(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// BenchmarkOpen opens a session of 100,000 message entries of about 1 KB.
func BenchmarkOpen(b *testing.B) {
	path := bigSession(b, 100_000)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	empty := fresh(b)
	b.SetBytes(info.Size())
	b.ReportAllocs()
	var ours, theirs time.Duration
	for b.Loop() {
		begun := time.Now()
		s, err := jsonl.Driver{}.Open(context.Background(), path, options())
		if err != nil {
			b.Fatal(err)
		}
		ours += time.Since(begun)
		b.StopTimer()
		closeStore(b, s)
		begun = time.Now()
		if err := structurePass(path); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(begun)
		b.StartTimer()
	}
	b.ReportMetric(float64(theirs)/float64(ours), "of-jsontext")
	b.ReportMetric(peak(b, path)-peak(b, empty), "MB-peak")
}

// peak is the VmHWM, in MB, of a process that does no more than open a session
// (D63).
func peak(b testing.TB, path string) float64 {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=peak", childPath+"="+path)
	out, err := cmd.Output()
	var kb float64
	if _, scanErr := fmt.Sscanf(string(out), "%f", &kb); err != nil || scanErr != nil {
		b.Fatalf("child said %q: %v", out, err)
	}
	return kb / 1024
}

func reportPeak(path string) int {
	s, err := jsonl.Driver{}.Open(context.Background(), path, store.OpenOptions{})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Println("status:", err)
		return 1
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Println(strings.Fields(rest)[0])
	if err := s.Close(); err != nil {
		return 1
	}
	return 0
}

// BenchmarkScanBranch reads a branch of 1,000 entries of about 1 KB with their
// payloads, as building a context does.
func BenchmarkScanBranch(b *testing.B) {
	path := bigSession(b, 1000)
	s := open(b, path)
	b.ReportAllocs()
	for b.Loop() {
		entries, err := s.ScanBranch(context.Background(), store.BranchQuery{Start: bulk.EntryID(999)})
		if err != nil || len(entries) != 1000 {
			b.Fatal(len(entries), err)
		}
	}
}
