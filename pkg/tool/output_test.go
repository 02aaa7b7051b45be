package tool

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

func TestOutput(t *testing.T) {
	long := strings.Repeat("x", maxBytes)
	cases := []struct {
		name, text string
		want       view
	}{
		{"nothing", "", view{}},
		{"whole", "a\nb", view{text: "a\nb", lines: 2, total: 2}},
		{"as many lines as fit", numbered(1, maxLines), view{text: numbered(1, maxLines), lines: maxLines, total: maxLines}},
		{"one line more", numbered(1, maxLines+1), view{text: numbered(2, maxLines+1), lines: maxLines, total: maxLines + 1, cut: true}},
		{"one unfinished line more", numbered(1, maxLines) + "z", view{text: numbered(2, maxLines) + "z", lines: maxLines, total: maxLines + 1, cut: true}},
		{"as many bytes as fit", long, view{text: long, lines: 1, total: 1}},
		{"from a line", "y\n" + long[:maxBytes-6] + "\nabc\n", view{text: long[:maxBytes-6] + "\nabc\n", lines: 2, total: 3, cut: true}},
		{"not from a line that starts late", long + "\nabc\n", view{text: long[5:] + "\nabc\n", lines: 2, total: 2, cut: true, partLine: true}},
		{"within a line", "y" + long, view{text: long, lines: 1, total: 1, cut: true, partLine: true}},
		{"at a character", "é" + long[1:], view{text: long[1:], lines: 1, total: 1, cut: true, partLine: true}},
		{"a line end in front", "y\n" + long, view{text: long, lines: 1, total: 2, cut: true}},
		{"long after it was cut", strings.Repeat(long[:1000]+"\n", 1000) + "end", view{
			text: strings.Repeat(long[:1000]+"\n", 51) + "end", lines: 52, total: 1001, cut: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{len(c.text) + 1, 7} {
				o := &Output{Tool: "bash", TempDir: t.TempDir()}
				for at := 0; at < len(c.text); at += size {
					_, _ = o.Write([]byte(c.text[at:min(at+size, len(c.text))]))
				}
				o.Finish()
				if diff := cmp.Diff(c.want, o.last(), cmp.AllowUnexported(view{})); diff != "" {
					t.Fatalf("in chunks of %d: %s", size, clip(diff, 2000))
				}
				if (o.spool != nil) != c.want.cut {
					t.Fatalf("there is a file: %v", o.spool != nil)
				}
			}
		})
	}
}

// TestOutputProperties compares an output with the plain definition of it.
func TestOutputProperties(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		o := &Output{Tool: "bash", TempDir: dir}
		var raw strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "chunks") {
			unit := rapid.SampledFrom([]string{"\n", "a", "line\n", "é", "\xff", "\xc3", strings.Repeat("w", 300) + "\n"}).Draw(t, "unit")
			chunk := strings.Repeat(unit, rapid.SampledFrom([]int{1, 2, 700, 3000}).Draw(t, "times"))
			raw.WriteString(chunk)
			_, _ = o.Write([]byte(chunk))
		}
		o.Finish()
		whole := validText(raw.String())
		v := o.last()
		if !strings.HasSuffix(whole, v.text) || len(v.text) > maxBytes || countLines(v.text) > maxLines {
			t.Fatalf("%d bytes, %d lines are no end of the output", len(v.text), countLines(v.text))
		}
		start := len(whole) - len(v.text)
		if v.cut != (start > 0) || v.partLine != (start > 0 && whole[start-1] != '\n') || v.total != int64(countLines(whole)) {
			t.Fatalf("cut %v, part %v, total %d: of %d bytes %d are shown", v.cut, v.partLine, v.total, len(whole), len(v.text))
		}
		if v.cut && len(v.text) < maxBytes/2 && countLines(v.text) < maxLines {
			t.Fatalf("only %d bytes, %d lines", len(v.text), countLines(v.text))
		}
		if o.spool == nil {
			if v.cut {
				t.Fatal("no file holds the whole")
			}
			return
		}
		saved, err := os.ReadFile(o.spool.path)
		if err != nil || string(saved) != raw.String() || !v.cut {
			t.Fatalf("saved %d of %d bytes, cut %v: %v", len(saved), raw.Len(), v.cut, err)
		}
		os.Remove(o.spool.path)
	})
}

func TestOutputFile(t *testing.T) {
	o := &Output{Tool: "bash", TempDir: t.TempDir()}
	_, _ = o.Write([]byte(numbered(1, 3000) + "\xff\x00"))
	o.Finish()
	info, err := os.Stat(o.spool.path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := os.ReadFile(o.spool.path)
	if want := numbered(1, 3000) + "\xff\x00"; err != nil || string(got) != want {
		t.Errorf("saved %d of %d bytes: %v", len(got), len(want), err)
	}
}

// TestOutputLost checks that an output whose process is killed leaves no file.
func TestOutputLost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a file has a name from the start here")
	}
	dir := t.TempDir()
	o := &Output{Tool: "bash", TempDir: dir}
	_, _ = o.Write([]byte(numbered(1, 3000)))
	if o.spool == nil || o.spool.path != "" {
		t.Fatalf("the file is %+v", o.spool)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	o.Finish()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || dir+"/"+left[0].Name() != o.spool.path {
		t.Errorf("%v, %v", left, err)
	}
}

// TestOutputIsBounded checks that an endless output does not fill the disk, and that
// the result tells what is missing.
func TestOutputIsBounded(t *testing.T) {
	o := &Output{Tool: "bash", TempDir: t.TempDir()}
	_, _ = o.Write([]byte(numbered(1, 3000)))
	o.spool.saved = maxSpooled - 1 // as if there were so much
	_, _ = o.Write([]byte("end\n"))
	o.Finish()
	if info, err := os.Stat(o.spool.path); err != nil || info.Size() != 13893+1 {
		t.Errorf("%v, %v", info, err)
	}
	o.raw = maxSpooled + 3
	want := "The last 2000 of 3001 lines; the first 268435456 of 268435459 bytes are in " + o.spool.path + "."
	if got := cutNote(o.last(), o); got != want {
		t.Errorf("note %q", got)
	}
}

func TestOutputWithoutFile(t *testing.T) {
	o := &Output{Tool: "bash", TempDir: t.TempDir() + "/missing"}
	_, _ = o.Write([]byte(numbered(1, 3000)))
	_, _ = o.Write([]byte("end\n"))
	o.Finish()
	v := o.last()
	if want := numbered(1002, 3000) + "end\n"; v.text != want {
		t.Errorf("the text suffers from the file: %d bytes, want %d", len(v.text), len(want))
	}
	if got, want := cutNote(v, o), "The last 2000 of 3001 lines; the full output could not be kept: open "; !strings.HasPrefix(got, want) {
		t.Errorf("note %q", got)
	}
}

// TestOutputFileFails checks that a file which cannot be finished is not passed
// off as the whole.
func TestOutputFileFails(t *testing.T) {
	o := &Output{Tool: "bash", TempDir: t.TempDir()}
	_, _ = o.Write([]byte(numbered(1, 3000)))
	name := t.TempDir() + "/full"
	closed, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	o.spool = &spool{file: closed, path: name, saved: o.spool.saved}
	_, _ = o.Write([]byte("end\n"))
	o.Finish()
	want := "The last 2000 of 3001 lines; the first 13893 bytes are in " + name + ", the rest could not be kept: file already closed."
	if got := cutNote(o.last(), o); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	o.saveErr = nil // as when the file is as long as it may be
	want = "The last 2000 of 3001 lines; the first 13893 of 13897 bytes are in " + name + "."
	if got := cutNote(o.last(), o); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
