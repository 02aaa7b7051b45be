package tool

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// put writes a file below dir and returns its path.
func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadText(t *testing.T) {
	dir := t.TempDir()
	r := toolNamed("read", Options{CWD: dir})
	wide := strings.Repeat("x", 1023) + "\n" // 50 of them fill a result
	put(t, dir, "small", "one\ntwo\nthree")
	put(t, dir, "sub/ends", "one\r\ntwo\r\n")
	put(t, dir, "empty", "")
	put(t, dir, "lines", numbered(1, 4500))
	put(t, dir, "wide", strings.Repeat(wide, 120))
	put(t, dir, "long", "first\n"+strings.Repeat("é", 60<<10)+"\nlast\n")
	put(t, dir, "bom", "\ufefftext\n")
	put(t, dir, "latin", "caf\xe9\n")
	put(t, dir, "late", strings.Repeat("text\n", 4000)+"\x00\n")
	whole, more := `{"truncated":false}`, func(next int) string { return fmt.Sprintf(`{"truncated":true,"nextOffset":%d}`, next) }
	cases := []struct {
		name, args string
		want       outcome
	}{
		{"whole", `{"path":"small"}`, outcome{Text: "one\ntwo\nthree", Details: whole}},
		{"line ends", `{"path":"./sub/../sub/ends"}`, outcome{Text: "one\r\ntwo\r\n", Details: whole}},
		{"absolute", `{"path":"` + dir + `/small","offset":3}`, outcome{Text: "three", Details: whole}},
		{"empty", `{"path":"empty"}`, outcome{Text: "(empty file)", Details: whole}},
		{"offset and limit", `{"path":"small","offset":2,"limit":1}`, outcome{
			Text: "two\n[Lines 2 to 2 of small; it goes on with offset 3.]", Details: more(3)}},
		{"limit at the end", `{"path":"small","offset":2.0,"limit":2e0}`, outcome{Text: "two\nthree", Details: whole}},
		{"many lines", `{"path":"lines"}`, outcome{
			Text: numbered(1, 2000) + "[Lines 1 to 2000 of lines; it goes on with offset 2001.]", Details: more(2001)}},
		{"many lines, going on", `{"path":"lines","offset":4001}`, outcome{Text: numbered(4001, 4500), Details: whole}},
		{"many lines, too large a limit", `{"path":"lines","offset":2,"limit":100000}`, outcome{
			Text: numbered(2, 2001) + "[Lines 2 to 2001 of lines; it goes on with offset 2002.]", Details: more(2002)}},
		{"many bytes", `{"path":"wide"}`, outcome{
			Text: strings.Repeat(wide, 50) + "[Lines 1 to 50 of wide; it goes on with offset 51.]", Details: more(51)}},
		{"many bytes, going on", `{"path":"wide","offset":101}`, outcome{Text: strings.Repeat(wide, 20), Details: whole}},
		{"before a long line", `{"path":"long"}`, outcome{
			Text: "first\n[Lines 1 to 1 of long; it goes on with offset 2.]", Details: more(2)}},
		{"a long line", `{"path":"long","offset":2}`, outcome{
			Text: strings.Repeat("é", 25<<10) + "\n[Line 2 is longer than 51200 bytes and cut here; bash can show its rest. If lines follow, go on with offset 3.]", Details: more(3)}},
		{"after a long line", `{"path":"long","offset":3}`, outcome{Text: "last\n", Details: whole}},
		{"byte order mark", `{"path":"bom"}`, outcome{Text: "text\n", Details: whole}},
		{"not UTF-8", `{"path":"latin"}`, outcome{Text: "caf�\n", Details: whole}},
		{"text before binary", `{"path":"late","limit":10}`, outcome{
			Text: strings.Repeat("text\n", 10) + "[Lines 1 to 10 of late; it goes on with offset 11.]", Details: more(11)}},
		{"late binary", `{"path":"late","offset":4000}`, outcome{
			Err: "read late: it is not text: there is a NUL byte in what was asked for"}},
		{"past the end", `{"path":"small","offset":4}`, outcome{Err: "read small: offset 4 is past its end: it has 3 lines"}},
		{"far past the end", `{"path":"long","offset":1e300}`, outcome{Err: fmt.Sprintf("read long: offset %d is past its end: it has 3 lines", int64(1)<<52)}},
		{"missing", `{"path":"none"}`, outcome{Err: "read file: stat " + dir + "/none: no such file or directory"}},
		{"folder", `{"path":"sub"}`, outcome{Err: "read file: " + dir + "/sub is a directory"}},
		{"no offset", `{"path":"small","offset":0}`, outcome{Err: "$.offset is a number (0) that must be at least 1"}},
		{"half a line", `{"path":"small","offset":1.5}`, outcome{Err: "$.offset is a number (1.5) that must be an integer"}},
		{"NUL", `{"path":"a\u0000b"}`, outcome{Err: "$.path is a string that holds a NUL character"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, call(t, r, c.args)); diff != "" {
				t.Error(clip(diff, 3000))
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	r := toolNamed("read", Options{CWD: dir})
	tar := make([]byte, 512)
	copy(tar, "name")
	copy(tar[257:], "ustar")
	files := map[string]string{
		"\x7fELF\x02\x01":             "an ELF program",
		"%PDF-1.7\n":                  "a PDF document",
		"PK\x03\x04\x14\x00":          "a ZIP archive (or a document or package made of one)",
		"\x1f\x8b\x08":                "gzip data",
		"SQLite format 3\x00":         "an SQLite database",
		"\xff\xfeh\x00i\x00":          "UTF-16 text",
		"\x00\x00\x00\x18ftypisom":    "MP4 media",
		"RIFF\x00\x00\x00\x00WAVEfmt": `RIFF media ("WAVE")`,
		"OggS\x00":                    "Ogg media",
		"some\x00thing":               "binary data",
		string(tar):                   "a tar archive",
	}
	for content, what := range files {
		put(t, dir, "f", content)
		want := outcome{Err: fmt.Sprintf("read f: it is not text but looks like %s (%d bytes)", what, len(content))}
		if diff := cmp.Diff(want, call(t, r, `{"path":"f"}`)); diff != "" {
			t.Errorf("%q: %s", content, diff)
		}
	}
	// What only begins like one of them is text.
	for _, content := range []string{"BMW builds cars\n", "OggS\n", "ID3\n", "MZ\n", "RIFF of text"} {
		put(t, dir, "f", content)
		if got := call(t, r, `{"path":"f"}`); got.Text != content {
			t.Errorf("%q: %+v", content, got)
		}
	}
	makeFIFO(t, dir, "pipe")
	if got, want := call(t, r, `{"path":"pipe"}`), (outcome{Err: "read file: " + dir + "/pipe is a named pipe"}); got != want {
		t.Errorf("got %+v", got)
	}
	if got, want := call(t, r, `{"path":"/dev/zero"}`), (outcome{Err: "read file: /dev/zero is a device"}); got != want {
		t.Errorf("got %+v", got)
	}
	if got := call(t, r, `{"path":"/proc/self/status"}`); !strings.HasPrefix(got.Text, "Name:") {
		t.Errorf("a file without a size: %+v", got)
	}
}

func TestReadImage(t *testing.T) {
	dir := t.TempDir()
	r := toolNamed("read", Options{CWD: dir})
	dot := image.NewGray(image.Rect(0, 0, 1, 1))
	var asPNG, asJPEG, asGIF bytes.Buffer
	if err := errors.Join(png.Encode(&asPNG, dot), jpeg.Encode(&asJPEG, dot, nil), gif.Encode(&asGIF, dot, nil)); err != nil {
		t.Fatal(err)
	}
	for mime, data := range map[string]string{
		"image/png": asPNG.String(), "image/jpeg": asJPEG.String(), "image/gif": asGIF.String(),
		"image/webp": "RIFF\x04\x00\x00\x00WEBP",
	} {
		put(t, dir, "picture.txt", data) // the name means nothing
		got, err := r.Execute(t.Context(), effect.Invocation{Args: []byte(`{"path":"picture.txt"}`)})
		want := message.ToolResult{Content: []message.Block{
			message.TextBlock(fmt.Sprintf("[picture.txt, %s, %d bytes]", mime, len(data))),
			{Type: message.BlockImage, Data: base64.StdEncoding.EncodeToString([]byte(data)), MimeType: mime},
		}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", mime, err, diff)
		}
	}
	put(t, dir, "huge", asPNG.String()+strings.Repeat("x", maxImage))
	want := outcome{Err: fmt.Sprintf("read huge: the image has %d bytes, %d are the most; make it smaller first", asPNG.Len()+maxImage, maxImage)}
	if got := call(t, r, `{"path":"huge"}`); got != want {
		t.Errorf("got %+v", got)
	}
}

func TestReadCancelled(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "f", "text\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{`{"path":"f"}`, `{"path":"f","offset":2}`} {
		got := callWith(ctx, toolNamed("read", Options{CWD: dir}), args, nil)
		if want := (outcome{Err: "read f: context canceled"}); got != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestFilesWithoutWorkingDirectory checks that a lost directory is never replaced
// by another one, nor made again.
func TestFilesWithoutWorkingDirectory(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	here := put(t, t.TempDir(), "here", "text")
	for _, path := range []string{"f", here, "~/f"} {
		for name, args := range map[string]string{
			"read":  `{"path":"` + path + `"}`,
			"write": `{"path":"` + path + `","content":""}`,
			"edit":  `{"path":"` + path + `","edits":[{"oldText":"a","newText":"b"}]}`,
		} {
			want := outcome{Err: "use the session's working directory: " + gone + " is gone"}
			if got := call(t, toolNamed(name, Options{CWD: gone}), args); got != want {
				t.Errorf("%s %s: %+v", name, path, got)
			}
		}
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("the directory is back: %v", err)
	}
}
