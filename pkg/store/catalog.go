package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
)

// catalogName is the file of a repository that keeps what lists show. It may be
// deleted at any time.
const catalogName = ".drover-catalog"

// stamp tells one content of a session's files from another (D62).
type stamp struct{ main, log fileStamp }

type fileStamp struct {
	inode       uint64
	size, mtime int64 // mtime in ns
}

// stampOf is false for what is no regular file: a link may lead elsewhere
// tomorrow.
func stampOf(path string) (stamp, bool) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return stamp{}, false
	}
	s := stamp{main: fileStampOf(fi)}
	// An empty log is what a reader leaves; it is no change (D10).
	if fi, err := os.Lstat(path + logSuffix); err == nil && fi.Size() > 0 {
		s.log = fileStampOf(fi)
	}
	return s, true
}

// logSuffix ends the name of the log that SQLite keeps beside a database.
const logSuffix = "-wal"

func (s stamp) modTime() time.Time { return time.Unix(0, max(s.main.mtime, s.log.mtime)) }

func fileStampOf(fi os.FileInfo) fileStamp {
	s := fileStamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// catalogRow is what the catalog knows of one file.
type catalogRow struct {
	file    string // without its folder once it is in the catalog
	stamp   stamp
	header  Header
	summary *Summary
}

// catalog is a cache in the repository's folder: one line per summary, the last
// of a file counts. Lines are appended whole and carry a checksum; what does not
// fit is as good as absent. Nobody locks it: who appends while another replaces
// it loses a line, and the session is read once more. That it cannot be written
// is no error, for the same reason.
type catalog struct {
	dir    string
	frozen bool // it is not written
}

func (r *Repo) catalog() catalog { return catalog{r.o.Dir, r.untouched} }

func (c catalog) path() string { return filepath.Join(c.dir, catalogName) }

// add appends rows; nil ones, and those of other folders, are left out.
func (c catalog) add(rows []*catalogRow) {
	if c.frozen {
		return
	}
	var text []byte
	for _, row := range rows {
		if row == nil || c.dir == "" || filepath.Dir(row.file) != c.dir {
			continue
		}
		line, err := row.appendLine(nil)
		if err != nil {
			continue
		}
		// A line that was torn before must not swallow this one.
		text = append(append(text, '\n'), line...)
	}
	if len(text) == 0 {
		return
	}
	f, err := os.OpenFile(c.path(), os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(text, '\n'))
	_ = f.Close()
}

// maxCatalog is the size of a catalog that is still read.
const maxCatalog = 1 << 30

// load returns the rows by file name. A catalog that is mostly outdated, or has
// lines that are none, is written anew.
func (c catalog) load() map[string]*catalogRow {
	rows, untidy := c.read()
	if untidy && !c.frozen {
		_ = c.replace(rows)
	}
	return rows
}

// ForgetGone takes the sessions that are gone out of the catalog: it holds their
// names.
func (r *Repo) ForgetGone() {
	c := r.catalog()
	rows, untidy := c.read()
	for name := range rows {
		_, err := os.Lstat(filepath.Join(c.dir, name))
		untidy = untidy || err != nil
	}
	if untidy && !c.frozen {
		_ = c.replace(rows)
	}
	c.sweep()
}

// sweep removes what processes that died while they wrote the catalog have left of it:
// it says what the catalog said. Nothing is removed while one is writing.
func (c catalog) sweep() {
	if c.frozen {
		return
	}
	alone, release := fsx.LockFolder(c.dir, true)
	defer release()
	names, err := readNames(c.dir)
	if !alone || err != nil {
		return
	}
	for _, name := range names {
		if target, ok := fsx.TempTarget(name); ok && target == catalogName {
			_ = os.Remove(filepath.Join(c.dir, name))
		}
	}
}

// read returns the rows by file name, and whether the catalog should be replaced.
func (c catalog) read() (rows map[string]*catalogRow, untidy bool) {
	f, err := os.OpenFile(c.path(), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxCatalog {
		return nil, false
	}
	text := make([]byte, fi.Size())
	n, err := io.ReadFull(f, text)
	if err != nil && n == 0 {
		return nil, false
	}
	lines := bytes.Split(text[:n], []byte{'\n'})
	parsed := make([]*catalogRow, len(lines))
	each(len(lines), func(i int) { parsed[i] = parseCatalogLine(lines[i]) })
	rows = make(map[string]*catalogRow, len(lines)/2)
	count, broken := 0, false
	for i, row := range parsed {
		switch {
		case row != nil:
			rows[row.file] = row
			count++
		case len(lines[i]) > 0:
			broken = true
		}
	}
	return rows, broken || count > 2*len(rows)+64
}

// Forget takes everything out of the catalog that it ever knew of a session. What
// was erased from the session must not live on there.
func (r *Repo) Forget(ref Ref) error {
	c := r.catalog()
	defer c.sweep()
	if fi, err := os.Lstat(c.path()); errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return nil // what is no file was never written
	}
	rows := c.load()
	delete(rows, filepath.Base(ref.Path))
	if err := c.replace(rows); err != nil {
		return fmt.Errorf("forget session %s: %w", ref.ID, err)
	}
	return nil
}

// replace writes the catalog anew, without the files that are gone. Power loss
// may take it.
func (c catalog) replace(rows map[string]*catalogRow) error {
	_, done := fsx.LockFolder(c.dir, false)
	defer done()
	return fsx.Replace(fsx.OS{}, c.path(), fsx.ReplaceOptions{Existing: true, NoSync: true}, func(w io.Writer) error {
		for name, row := range rows {
			if _, err := os.Lstat(filepath.Join(c.dir, name)); err != nil {
				continue
			}
			line, err := row.appendLine(nil)
			if err != nil {
				return err
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

const checksumLen = 8 // hexadecimal digits

func (row *catalogRow) appendLine(dst []byte) ([]byte, error) {
	body := append([]byte(nil), `{"file":`...)
	body = rawjson.AppendQuote(body, filepath.Base(row.file))
	body = append(body, `,"stamp":`...)
	body = row.stamp.appendJSON(body)
	body = append(body, `,"header":`...)
	body, err := row.header.AppendJSON(body)
	if err != nil {
		return nil, err
	}
	body = append(body, `,"name":`...)
	body = rawjson.AppendQuote(body, row.summary.Name)
	body = append(body, `,"lanes":`...)
	body = AppendTexts(body, row.summary.Lanes)
	body = append(body, `,"open":`...)
	body = strconv.AppendBool(body, row.summary.Open)
	body = appendIntField(body, "messages", row.summary.Stats.MessageCount)
	body = append(body, `,"usage":`...)
	if body, err = row.summary.Stats.Usage.AppendJSON(body); err != nil {
		return nil, err
	}
	body = append(body, '}')
	sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(body))|1<<32, 16)
	return append(append(append(dst, sum[1:]...), ' '), body...), nil
}

// parseCatalogLine returns nil for what is no whole line.
func parseCatalogLine(line []byte) *catalogRow {
	if len(line) < checksumLen+1 || line[checksumLen] != ' ' {
		return nil
	}
	body := line[checksumLen+1:]
	sum, err := strconv.ParseUint(string(line[:checksumLen]), 16, 32)
	if err != nil || uint32(sum) != crc32.ChecksumIEEE(body) {
		return nil
	}
	made := &struct {
		catalogRow
		Summary
	}{}
	row := &made.catalogRow
	row.summary = &made.Summary
	syntax := rawjson.MembersFunc(body, func(m rawjson.Member) bool {
		err = row.field(m)
		return err == nil
	})
	if syntax != nil || err != nil || row.file == "" {
		return nil
	}
	return row
}

// field takes over one member of a line that this package wrote.
func (row *catalogRow) field(m rawjson.Member) (err error) {
	switch s := row.summary; string(m.Key) {
	case `"file"`:
		row.file, err = rawjson.Unquote(m.Value)
	case `"stamp"`:
		row.stamp, err = parseStamp(m.Value)
	case `"header"`:
		row.header, err = ParseHeader(m.Value)
	case `"name"`:
		s.Name, err = rawjson.Unquote(m.Value)
	case `"lanes"`:
		for raw := range rawjson.Elements(m.Value) {
			var lane string
			if lane, err = rawjson.Unquote(raw); err != nil {
				break
			}
			s.Lanes = append(s.Lanes, lane)
		}
	case `"open"`:
		s.Open = m.Value[0] == 't'
	case `"messages"`:
		s.Stats.MessageCount, _ = rawjson.ParseInt(m.Value)
	case `"usage"`:
		s.Stats.Usage, err = message.ParseUsage(m.Value)
	}
	return err
}

func (s stamp) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, f := range []fileStamp{s.main, s.log} {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, f.inode, 10)
		dst = rawjson.AppendInt(append(dst, ','), f.size)
		dst = rawjson.AppendInt(append(dst, ','), f.mtime)
	}
	return append(dst, ']')
}

func parseStamp(raw []byte) (stamp, error) {
	var n [6]int64
	i := 0
	err := rawjson.ElementsFunc(raw, func(start, end int) bool {
		x, err := strconv.ParseUint(string(raw[start:end]), 10, 64)
		if err != nil || i == len(n) {
			i = -1 // one that is not written by appendJSON
			return false
		}
		n[i] = int64(x)
		i++
		return true
	})
	if err != nil || i != len(n) {
		return stamp{}, strconv.ErrSyntax
	}
	return stamp{fileStamp{uint64(n[0]), n[1], n[2]}, fileStamp{uint64(n[3]), n[4], n[5]}}, nil
}
