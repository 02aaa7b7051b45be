package v3import

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/rawjson"
)

// Manifest is a file that remembers the sources of a batch that have ended, so
// that a batch that was cut short goes on where it stopped. It is ndjson, a line
// for each source as it ends, the last line of a source counts:
//
//	{"source":PATH,"size":BYTES,"mtime":TIME,"sha256":HEX,"status":STATUS,"session":ID,"error":CODE}
//
// PATH is absolute, TIME is RFC 3339 with nanoseconds, STATUS is imported,
// skipped or failed. Of a failed source mtime, sha256 and session may be null, of
// any other error is. More members are legal. A last line without its newline
// was cut off by a crash and is dropped.
//
// It is a memory of looks and no authority: a source is passed over when path,
// size and time are those of its line and the repository holds the line's session
// with the line's digest. Methods may be called from several goroutines.
type Manifest struct {
	path string
	done map[string]finished // by path, those that did not fail

	mu   sync.Mutex
	file fsx.File // nil for one that is only read
}

// finished is a source that ended well.
type finished struct {
	size    int64
	mtime   time.Time
	digest  string
	session string
}

// NoManifest is a file that is no manifest; nothing was changed in it. Line
// counts from 1.
type NoManifest struct {
	Path string
	Line int64
	Msg  string
}

func (e *NoManifest) Error() string {
	return fmt.Sprintf("%s is no manifest of an import: line %d: %s", e.Path, e.Line, e.Msg)
}

// maxManifestLine is far above what a path can make of a line, in bytes.
const maxManifestLine = 256 << 10

// manifestStart is how every line begins, as far as this package writes it.
const manifestStart = `{"source":`

// OpenManifest reads a manifest; one that is not there is empty. Unless it is
// only to be read, it is created and a torn last line is cut off. The error is
// *NoManifest for a file of another shape, else that of the file system.
func OpenManifest(fsys fsx.FS, path string, readOnly bool) (*Manifest, error) {
	m := &Manifest{path: path, done: make(map[string]finished)}
	stat, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	switch {
	case fresh && readOnly:
		return m, nil
	case err != nil && !fresh:
		return nil, m.failed(err)
	case err == nil && !stat.Mode().IsRegular():
		return nil, &NoManifest{path, 1, "not a regular file"}
	}
	flag := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := fsys.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, m.failed(err)
	}
	end, torn, err := m.read(f)
	switch {
	case err != nil || readOnly:
		return m, errors.Join(err, f.Close())
	case torn:
		err = f.Truncate(end)
	case fresh:
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(m.failed(err), f.Close())
	}
	m.file = f
	return m, nil
}

func (m *Manifest) failed(err error) error {
	return fmt.Errorf("manifest %s: %w", m.path, err)
}

// read takes in every whole line. end is where they end, torn that more follows.
func (m *Manifest) read(f fsx.File) (end int64, torn bool, err error) {
	stat, err := f.Stat()
	if err != nil {
		return 0, false, m.failed(err)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, stat.Size()), maxManifestLine)
	for n := int64(1); ; n++ {
		line, err := r.ReadSlice('\n')
		switch {
		case err == io.EOF:
			// What nothing else shows to be a manifest must begin like one.
			if n == 1 && !bytes.HasPrefix(line, []byte(manifestStart)) && !bytes.HasPrefix([]byte(manifestStart), line) {
				return 0, false, &NoManifest{m.path, n, "not the record of a source"}
			}
			return end, len(line) > 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, false, &NoManifest{m.path, n, "too long for the record of a source"}
		case err != nil:
			return 0, false, m.failed(err)
		}
		if msg := m.line(line); msg != "" {
			return 0, false, &NoManifest{m.path, n, msg}
		}
		end += int64(len(line))
	}
}

// line takes in one line, or says what is wrong with it.
func (m *Manifest) line(b []byte) (wrong string) {
	if syntax := rawjson.Valid(b); syntax != nil || rawjson.KindOf(b) != rawjson.Object {
		return "not a JSON object"
	}
	source, _ := rawjson.GetString(b, "source")
	status, _ := rawjson.GetString(b, "status")
	size, sized := rawjson.GetInt(b, "size")
	if source == "" || !sized || size < 0 {
		return "it names no source with its size"
	}
	switch Status(status) {
	case StatusFailed:
		delete(m.done, source)
		return ""
	case StatusImported, StatusSkipped:
	default:
		return "status is none of imported, skipped, failed"
	}
	d := finished{size: size}
	text, _ := rawjson.GetString(b, "mtime")
	mtime, err := time.Parse(time.RFC3339Nano, text)
	d.mtime = mtime
	d.digest, _ = rawjson.GetString(b, "sha256")
	d.session, _ = rawjson.GetString(b, "session")
	if err != nil || d.digest == "" || d.session == "" {
		return "mtime, sha256 or session is missing"
	}
	m.done[source] = d
	return ""
}

// add makes what became of a source durable.
func (m *Manifest) add(c *candidate, it Item) error {
	line := rawjson.AppendQuote([]byte(manifestStart), c.abs)
	line = rawjson.AppendInt(append(line, `,"size":`...), c.size)
	mtime := ""
	if !c.mtime.IsZero() {
		mtime = c.mtime.UTC().Format(time.RFC3339Nano)
	}
	line = appendTextOrNull(append(line, `,"mtime":`...), mtime)
	line = appendTextOrNull(append(line, `,"sha256":`...), c.digest)
	line = rawjson.AppendQuote(append(line, `,"status":`...), string(it.Status))
	line = appendTextOrNull(append(line, `,"session":`...), it.Session)
	code := ""
	if it.Failure != nil {
		code = it.Failure.Code
	}
	line = append(appendTextOrNull(append(line, `,"error":`...), code), "}\n"...)

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	if _, err := m.file.Write(line); err != nil {
		return m.failed(err)
	}
	if err := m.file.Sync(); err != nil {
		return m.failed(err)
	}
	return nil
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return rawjson.AppendQuote(dst, s)
}

// Close closes the file. Closing twice is legal.
func (m *Manifest) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	f := m.file
	m.file = nil
	if err := f.Close(); err != nil {
		return m.failed(err)
	}
	return nil
}

// says reports that a skipped file's line is there already, as that of a
// continuation, which is looked at in every run.
func (m *Manifest) says(c *candidate) bool {
	d, ok := m.done[c.abs]
	return ok && c.item.Status == StatusSkipped && d.session == c.item.Session &&
		d.size == c.size && d.digest == c.digest && d.mtime.Equal(c.mtime)
}

// remember puts what became of a file into the manifest. A batch that cannot do
// so stops.
func (b *batch) remember(c *candidate) {
	if b.o.Manifest == nil || b.o.DryRun || c.Passing || c.remembered || b.o.Manifest.says(c) {
		return
	}
	if err := b.o.Manifest.add(c, c.item); err != nil {
		b.stop(err)
	}
}

// look is the look at a source, from the manifest when that knows all there is
// to see.
func (b *batch) look(ctx context.Context, s Source) *candidate {
	if c := b.remembered(s); c != nil {
		return c
	}
	return look(ctx, s)
}

// remembered is a source that ended well before, and has not changed since;
// nil for any other.
func (b *batch) remembered(s Source) *candidate {
	if b.o.Manifest == nil || s.Err != nil || s.Passing {
		return nil
	}
	abs, err := filepath.Abs(s.Path)
	if err != nil {
		return nil
	}
	d, ok := b.o.Manifest.done[abs]
	if !ok {
		return nil
	}
	stat, err := os.Stat(abs)
	if err != nil || !stat.Mode().IsRegular() || stat.Size() != d.size || !stat.ModTime().Equal(d.mtime) {
		return nil
	}
	o, ok := b.known.session(d.session)
	if !ok || o.digest != d.digest {
		return nil
	}
	return &candidate{Source: s, abs: abs, id: o.id, digest: d.digest, size: d.size, mtime: d.mtime, line: 1, remembered: true}
}
