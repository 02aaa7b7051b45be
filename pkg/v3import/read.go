package v3import

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Session is a legacy file that was read: its header, what it held, and a source
// of records. It keeps the file open until Close.
type Session struct {
	// Header is the session's metadata. The caller may set its parent before
	// Snapshot; until then a parent is kept as LegacyParentSessionPath.
	Header store.Header
	// Report counts what the file held.
	Report Report
	// Path is the file as it was named.
	Path string
	// LegacyID is the id in the file's header.
	LegacyID string
	// Digest is the SHA-256 of the file, Bytes its length.
	Digest string
	Bytes  int64
	// Grown is how many bytes were appended since; they are not in here.
	Grown int64

	tree *tree
	stat os.FileInfo
	spot int64 // of the aggregate usage row, Unix ms
}

// Changed is a source that was rewritten while it was read.
type Changed struct{ Path string }

func (e *Changed) Error() string { return e.Path + ": the file changed while it was read" }

// Read indexes a legacy file. It fails with a *Failure for a file that is
// refused; other errors are those of reading it. A file that is rewritten
// meanwhile is read once more, then it is *Changed; of one that grows, what was
// there at the beginning is read.
func Read(ctx context.Context, path string, o Options) (*Session, error) {
	return read(ctx, path, o, nil)
}

// read is Read with what a batch knows already.
func read(ctx context.Context, path string, o Options, known *fingerprint) (*Session, error) {
	if o.Path == "" {
		o.Path = path
	}
	if o.Now == nil {
		o.Now = store.SystemNow
	}
	for retry := false; ; retry = true {
		s, err := readOnce(ctx, path, o, known)
		if err != nil {
			return nil, err
		}
		if s.unchanged() == nil {
			return s, nil
		}
		_ = s.Close()
		if retry {
			return nil, &Changed{Path: o.Path}
		}
		known = nil
	}
}

func readOnce(ctx context.Context, path string, o Options, known *fingerprint) (_ *Session, err error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	stat, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.Path, err)
	}
	digest := make(chan digested, 1)
	go func() { digest <- digestOf(f, stat, known) }()
	x := newIndex(f, stat.Size(), o)
	t, err := x.tree(ctx)
	d := <-digest
	var failure *Failure
	if errors.As(err, &failure) {
		failure.Warnings = x.notes.sorted()
	}
	if err == nil && d.err != nil {
		err = fmt.Errorf("read %s: %w", o.Path, d.err)
	}
	if err != nil {
		return nil, err
	}
	s := &Session{Path: o.Path, LegacyID: x.head.id, Digest: d.sum, Bytes: stat.Size(), tree: t, stat: stat}
	s.describe(o)
	if o.Strict && len(s.Report.Warnings) > 0 {
		return nil, strict(o.Path, s.Report.Warnings)
	}
	return s, nil
}

// openRegular opens a file for reading. It never blocks: what is no regular
// file is not opened at all.
func openRegular(path string) (*os.File, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read session file: %w", err)
	}
	if !stat.Mode().IsRegular() {
		return nil, &Failure{Path: path, Code: CodeCorrupt, Message: "not a regular file", Line: 1}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read session file: %w", err)
	}
	return f, nil
}

// tree runs the first pass.
func (x *index) tree(ctx context.Context) (*tree, error) {
	if err := x.scan(ctx); err != nil {
		return nil, err
	}
	return x.resolve()
}

// fingerprint tells one state of a file from another.
type fingerprint struct {
	sum   string // SHA-256
	size  int64
	mtime time.Time
}

type digested struct {
	sum string
	err error
}

func digestOf(f *os.File, stat os.FileInfo, known *fingerprint) digested {
	if known != nil && known.size == stat.Size() && known.mtime.Equal(stat.ModTime()) {
		return digested{sum: known.sum}
	}
	sum, err := digest(f, stat.Size())
	return digested{sum: sum, err: err}
}

// digest is the SHA-256 of the first n bytes of a file.
func digest(f io.ReaderAt, n int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, max(1, min(firstChunk/4, n)))
	got, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(f, 0, n), buf)
	if err == nil && got < n {
		err = io.ErrUnexpectedEOF
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// unchanged reports, as *Changed, a file that no longer begins with what was
// read. One that only grew, as under an agent that is still at work, is the same
// up to there.
func (s *Session) unchanged() error {
	now, err := s.tree.file.Stat()
	if err != nil || now.Size() < s.Bytes {
		return &Changed{Path: s.Path}
	}
	s.Grown = now.Size() - s.Bytes
	if s.Grown == 0 && now.ModTime().Equal(s.stat.ModTime()) {
		return nil
	}
	if sum, err := digest(s.tree.file, s.Bytes); err != nil || sum != s.Digest {
		return &Changed{Path: s.Path}
	}
	return nil
}

// Close gives up the file. Closing twice is legal.
func (s *Session) Close() error {
	err := s.tree.file.Close()
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close %s: %w", s.Path, err)
	}
	return nil
}

// describe makes the header and the report, and mints the entries' ids.
func (s *Session) describe(o Options) {
	t := s.tree
	h := &t.head
	s.Header = store.Header{
		ID: h.id, StorageVersion: store.StorageVersion, CreatedAt: h.created, CWD: h.cwd, Generation: 1,
		LegacyParentSessionPath: h.parent,
	}
	if h.rest != nil {
		s.Header.Extra = []store.HeaderField{{Key: []byte(`"legacyHeader"`), Value: h.rest}}
	}
	s.choose(o)
	r := &s.Report
	r.Kinds, r.Usage = t.kinds, t.usage
	m := minter{source: o.IDs, seed: s.Header.ID}
	s.spot = h.created
	for i := range t.records {
		rec := &t.records[i]
		s.spot = max(s.spot, rec.ts)
		switch {
		case rec.kind == kindLost:
			continue
		case !rec.kind.kept():
			r.Discarded++
			continue
		case rec.kind == kindRaw: // no record of the file
		case rec.kind == kindMessage || rec.kind == kindCustomMessage:
			r.Messages++
		}
		r.Entries++
		rec.id = m.at(rec.ts, rec.off)
	}
	for _, k := range t.kinds {
		if k.Type == "session" {
			r.Discarded += k.Count
		}
	}
	r.Warnings = t.notes.sorted()
	s.Header.Source = s.source(o)
}

// choose gives the session its id: the header's when it can be kept, with the
// old one beside it otherwise (D2).
func (s *Session) choose(o Options) {
	h := &s.tree.head
	bad := store.CheckID(h.id)
	id := o.id
	switch {
	case id != "":
	case o.NewID || bad != nil:
		id = freshSessionID(h.id, s.Digest, h.stated)
	default:
		id = h.id
	}
	if id == h.id {
		return
	}
	s.Header.ID, s.Header.LegacySessionID = id, h.id
	switch {
	case o.why != "":
		s.tree.warn(h.line, h.off, "session_id", "session id %q %s; it becomes %s", h.id, o.why, id)
	case bad != nil && !o.NewID:
		s.tree.warn(h.line, h.off, "session_id", "%v; it becomes %s", bad, id)
	}
}

// source says what the session was imported from (D2, D14), and which sequence
// number came next: a session in which another one does was changed since.
func (s *Session) source(o Options) []byte {
	dst := append([]byte(nil), `{"format":"v3","id":`...)
	dst = rawjson.AppendQuote(dst, s.LegacyID)
	dst = append(append(dst, `,"sha256":"`...), s.Digest...)
	dst = rawjson.AppendInt(append(dst, `","bytes":`...), s.Bytes)
	dst = rawjson.AppendInt(append(dst, `,"version":`...), s.tree.version)
	dst = rawjson.AppendInt(append(dst, `,"nextSeq":`...), s.nextSeq())
	if o.passing {
		return append(dst, '}')
	}
	path, err := filepath.Abs(s.Path)
	if err != nil {
		path = s.Path
	}
	dst = rawjson.AppendQuote(append(dst, `,"path":`...), path)
	return append(dst, '}')
}
