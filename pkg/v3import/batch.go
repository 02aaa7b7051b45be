package v3import

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// OnExists says what to do with a file whose session was imported before.
type OnExists string

// The choices; "" is OnExistsSkip.
const (
	OnExistsSkip    OnExists = "skip"
	OnExistsFail    OnExists = "fail"
	OnExistsReplace OnExists = "replace"
)

// BatchOptions govern the import of several files. Options.Path is not used.
type BatchOptions struct {
	Options
	Backend  string // of new sessions, "" for the target's default
	Jobs     int    // files handled at a time; below 1 is 1
	OnExists OnExists
	// DryRun reads and judges every file and writes nothing.
	DryRun bool
	// Manifest, when set, remembers the sources that have ended; those that it
	// knows are skipped, whatever OnExists says. It is opened and closed by the
	// caller.
	Manifest *Manifest
	// Looked, when set, is told how many of all files have been looked at, which
	// comes before the first is imported. It is called once at a time.
	Looked func(done, all int)
	// Progress, when set, is told of progress, a call at a time.
	Progress func(Progress)
	// Done, when set, is told of each file as it ends, a call at a time.
	Done func(Item)
}

// Progress is how far a batch has come.
type Progress struct {
	Files, FilesDone int
	Bytes, BytesDone int64
}

// Result is what became of a batch: the items in path order.
type Result struct {
	Items  []Item
	Totals Totals
}

// Import imports files into a target. Each file stands alone: one that is broken
// is an item with a Failure and stops no other. A file that was imported before
// is found by its header's id and its content (D2), as is one that the batch has
// twice; a longer file of the same beginning is a continuation, other content
// under the same id a conflict.
// Parents are resolved whatever the order of the files. The error is the
// context's, that of listing the target or that of writing the manifest; the
// result then holds what was done.
func Import(ctx context.Context, target Target, sources []Source, o BatchOptions) (*Result, error) {
	start := time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b := &batch{target: target, o: o, known: &catalog{}, stop: stop}
	if err := b.known.load(ctx, target); err != nil {
		return &Result{}, err
	}
	sources = slices.Clone(sources)
	slices.SortFunc(sources, byPath)
	files := b.scan(ctx, sources)
	for _, c := range files {
		b.progress.Files++
		b.progress.Bytes += c.work()
	}
	units := plan(files, b.known)
	each(o.Jobs, len(units), func(i int) { b.unit(ctx, units[i]) })
	res := &Result{}
	for _, c := range files {
		if c.item.Status != "" {
			res.Items = append(res.Items, c.item)
			res.Totals.add(c.item)
		}
	}
	res.Totals.Seconds = time.Since(start).Seconds()
	if res.Totals.Seconds > 0 {
		res.Totals.BytesPerSecond = float64(res.Totals.Bytes) / res.Totals.Seconds
	}
	return res, context.Cause(ctx)
}

type batch struct {
	target Target
	o      BatchOptions
	known  *catalog
	stop   context.CancelCauseFunc

	mu       sync.Mutex
	progress Progress
	shown    int64 // bytes at the last call of Progress
}

// unit handles the files of one legacy id.
func (b *batch) unit(ctx context.Context, u *unit) {
	defer close(u.done)
	for _, c := range u.files {
		if ctx.Err() != nil {
			return
		}
		ticked := int64(0)
		item, err := b.file(ctx, c, func(n int64) {
			ticked += n
			b.advance(n, false)
		})
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			item = failedItem(c, err)
		}
		item.Source, item.Bytes = c.Path, c.size
		c.item = item
		b.advance(2*c.work()-ticked, true)
		b.remember(c)
		if b.o.Done != nil {
			b.mu.Lock()
			b.o.Done(item)
			b.mu.Unlock()
		}
	}
}

// advance counts bytes read, each of which is read twice.
func (b *batch) advance(n int64, file bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress.BytesDone += n
	if file {
		b.progress.FilesDone++
	}
	const step = 1 << 20
	if b.o.Progress == nil || !file && b.progress.BytesDone-b.shown < step {
		return
	}
	b.shown = b.progress.BytesDone
	p := b.progress
	p.BytesDone /= 2
	b.o.Progress(p)
}

// file decides about one file and imports it.
func (b *batch) file(ctx context.Context, c *candidate, tick func(int64)) (Item, error) {
	if c.err != nil {
		return Item{}, c.err
	}
	for again := 0; ; again++ {
		rel, o := b.known.relate(c)
		item, replace, err := b.decide(c, rel, o)
		if item.Status != "" || err != nil {
			return item, err
		}
		item, err = b.take(ctx, c, replace, tick)
		var changed *Changed
		var refused *Failure
		switch {
		case again == 2, errors.As(err, &refused):
			return item, err
		case errors.As(err, &changed):
			if c = relook(ctx, c); c.err != nil {
				return Item{}, c.err
			}
		case errors.Is(err, store.ErrExists) && !b.o.DryRun:
			// Another process was faster: look again at what is there.
			if err := b.known.load(ctx, b.target); err != nil {
				return Item{}, err
			}
		default:
			return item, err
		}
	}
}

// relook looks again at a file that has changed. Others may be looking at what
// was found first, so that stays as it is.
func relook(ctx context.Context, c *candidate) *candidate {
	n := look(ctx, c.Source)
	if n.err == nil && n.id != c.id {
		n.err = &Changed{Path: c.Path}
	}
	n.up, n.upHere, n.byName, n.self, n.ring, n.unit = c.up, c.upHere, c.byName, c.self, c.ring, c.unit
	return n
}

// decide settles a file that was imported before, or names the session that it
// shall replace, nil for none.
func (b *batch) decide(c *candidate, rel relation, o origin) (settled Item, replace *origin, err error) {
	skipped := Item{Status: StatusSkipped, Session: o.session}
	if rel == relGrown {
		skipped.Warnings = []Warning{{c.line, c.off, "continuation",
			fmt.Sprintf("the file goes on for %d bytes behind what session %s was imported from", c.size-o.bytes, o.session)}}
	}
	switch {
	case rel == relNew, rel != relSame && b.o.NewID:
		return Item{}, nil, nil
	case rel == relSame && (c.remembered || o.ours || b.o.OnExists != OnExistsFail && b.o.OnExists != OnExistsReplace):
		return skipped, nil, nil
	case b.o.OnExists == OnExistsReplace && (rel == relGrown || !o.ours):
		return Item{}, &o, nil
	case rel == relConflict:
		return Item{}, nil, c.exists("session %s was imported from another file of the same id", o.session)
	case b.o.OnExists == OnExistsFail:
		return Item{}, nil, c.exists("session %s was imported from this file, or its beginning, before", o.session)
	}
	return skipped, nil, nil
}

// take reads a file and imports it, as a new session or in the place of one.
func (b *batch) take(ctx context.Context, c *candidate, replace *origin, tick func(int64)) (Item, error) {
	o := b.o.Options
	o.Path, o.passing, o.tick = c.Path, c.Passing, tick
	switch planned := b.planned(c); {
	case replace != nil:
		o.id = replace.session
	case b.known.taken(planned) && planned == c.id:
		o.id, o.why = freshSessionID(c.id, c.digest, c.stated), "is taken by another session"
	default:
		o.id = planned
	}
	s, err := read(ctx, c.Path, o, &fingerprint{sum: c.digest, size: c.size, mtime: c.mtime})
	if err != nil {
		return Item{}, err
	}
	defer func() { _ = s.Close() }()
	parent, err := b.parent(ctx, c, s)
	if err != nil {
		return Item{}, err
	}
	if parent != "" {
		s.Header.ParentSessionID, s.Header.LegacyParentSessionPath = parent, ""
	}
	if o.Strict && len(s.Report.Warnings) > 0 {
		return Item{}, strict(c.Path, s.Report.Warnings)
	}
	item := Item{Session: s.Header.ID, Status: StatusWouldImport, Report: s.Report}
	if b.o.DryRun {
		err = b.wouldReplace(ctx, c, replace)
	} else {
		item.Status = StatusImported
		_, err = b.target.Import(ctx, s.Snapshot(), store.ImportOptions{Backend: b.o.Backend, Replace: replace != nil, Judge: c.untouched})
	}
	if err != nil {
		return Item{}, err
	}
	if s.Grown > 0 {
		item.Warnings = append(item.Warnings, Warning{c.line, c.off, "source_grew",
			fmt.Sprintf("the file grew by %d bytes while it was read; they are not imported", s.Grown)})
	}
	b.known.note(origin{session: s.Header.ID, id: c.id, digest: s.Digest, bytes: s.Bytes, path: c.abs, ours: true})
	return item, nil
}

// planned is the id that a file's session gets when nothing stands against it.
func (b *batch) planned(c *candidate) string {
	if b.o.NewID || store.CheckID(c.id) != nil {
		return freshSessionID(c.id, c.digest, c.stated)
	}
	return c.id
}

// parent is the session that a file's parent has become, "" when there is none;
// what is not as plain as that is a warning.
func (b *batch) parent(ctx context.Context, c *candidate, s *Session) (string, error) {
	warn := func(format string, args ...any) {
		s.tree.notes.add(c.line, c.off, "parent_session", format, args...)
		s.Report.Warnings = s.tree.notes.sorted()
	}
	id := c.upHere
	switch {
	case c.up == nil:
	case c.up.unit.place < c.unit.place:
		select {
		case <-c.up.unit.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		id = c.up.item.Session
	case c.up.unit == c.unit && c.up.item.Status != "":
		id = c.up.item.Session
	default: // in a ring: it comes later
		id = b.planned(c.up)
	}
	name := rawjson.Quote(c.parent)
	switch {
	case c.parent == "":
	case c.self:
		warn("parent session %s is the file itself; the path is kept", name)
	case id == "":
		warn("parent session %s is not there; the path is kept", name)
	case c.ring:
		warn("parent session %s is also a descendant of this file", name)
	case c.byName:
		warn("parent session %s found by its file name only", name)
	}
	return id, nil
}

func strict(path string, warnings []Warning) *Failure {
	w := warnings[0]
	return &Failure{
		Path: path, Code: CodeStrict, Message: "refused on a warning: " + w.Message,
		Line: w.Line, Offset: w.Offset, Warnings: warnings,
	}
}

// failedItem is the item of a file that could not be imported.
func failedItem(c *candidate, err error) Item {
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Path: c.Path, Code: codeOf(err), Message: err.Error(), Line: max(c.line, 1), Offset: c.off, Err: err}
	}
	item := Item{Status: StatusFailed, Failure: f}
	item.Warnings = f.Warnings
	return item
}

func codeOf(err error) string {
	var held *store.Held
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return CodeMissing
	case errors.Is(err, store.ErrExists):
		return CodeExists
	case errors.As(err, &held), errors.Is(err, store.ErrOpen):
		return CodeHeld
	}
	return CodeIO
}
