package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// ForkScope says how much of a session a fork copies (spec §2.7).
type ForkScope string

// The scopes: one path with a fresh main, or the whole tree with every lane.
const (
	ForkTree   ForkScope = "tree"
	ForkBranch ForkScope = "branch"
)

// ForkOptions describe a fork.
type ForkOptions struct {
	Scope   ForkScope // "" is tree
	ID      string    // of the new session; "" mints one
	Backend string    // a driver's name, "" for the source's

	// Branch scope only. Lane names the path, main by default; EntryID is the fork
	// point on it, its leaf by default; Before leaves that entry out.
	Lane    string
	EntryID string
	Before  bool
}

// Fork is what a fork copied.
type Fork struct {
	Ref     Ref
	Parent  string // the id in the source's header, which its file may not be named after
	Entries int
	Lanes   []string
}

// InvalidFork refuses a fork that makes no sense of its source.
type InvalidFork struct{ Reason string }

func (e *InvalidFork) Error() string { return "invalid fork: " + e.Reason }

// Tag is the refusal's stable name.
func (e *InvalidFork) Tag() string { return "InvalidFork" }

// Fork copies one coherent moment of a session into a new one: entries with
// their ids, names and labels, lane leaves and configurations; never operations,
// pending content or the ledger (spec §2.7). The new id is reserved before the
// source is read. A source that this Repo has open is given as its session; any
// other is read without owning it.
func (r *Repo) Fork(ctx context.Context, src Ref, open *Session, o ForkOptions) (Fork, error) {
	if o.ID == "" {
		o.ID = r.o.IDs().NewID()
	}
	if o.Backend == "" {
		o.Backend = src.Backend
	}
	f := forker{options: o, now: r.o.Now()}
	ref, release, err := r.writeFrom(ctx, o.ID, ImportOptions{Backend: o.Backend}, func() (*Snapshot, error) {
		snap, err := r.moment(ctx, src, open)
		if err != nil {
			return nil, err
		}
		return f.fork(snap)
	})
	if err != nil {
		return Fork{}, fmt.Errorf("fork session %s: %w", src.ID, err)
	}
	release()
	return Fork{Ref: ref, Parent: f.of, Entries: f.entries, Lanes: f.lanes}, nil
}

// moment reads the source: in its commit queue when it is open here, otherwise
// through a view that the snapshot then closes.
func (r *Repo) moment(ctx context.Context, src Ref, open *Session) (*Snapshot, error) {
	if open != nil {
		return open.coherent(ctx)
	}
	view, err := r.View(ctx, src)
	if err != nil {
		return nil, err
	}
	snap, err := view.Snapshot(ctx)
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	end := snap.Close
	snap.Close = func() error { return errors.Join(end(), view.Close()) }
	return snap, nil
}

// coherent takes a snapshot between two commits.
func (s *Session) coherent(ctx context.Context) (*Snapshot, error) {
	taken := make(chan *Snapshot, 1)
	err := s.commits.Do(ctx, func() error {
		return s.Guard(func() error {
			snap, err := s.backend.Snapshot(ctx)
			if err == nil {
				taken <- snap
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return <-taken, nil
}

// forker turns the snapshot of a source into that of its fork.
type forker struct {
	options ForkOptions
	now     int64

	leaf    map[string]LeafID // by lane
	parent  map[string]string // by entry id
	path    map[string]bool   // entries to copy, branch scope only
	point   LeafID            // main's leaf, branch scope only
	of      string            // the source's id
	entries int
	lanes   []string
}

func (f *forker) fork(src *Snapshot) (*Snapshot, error) {
	if err := f.survey(src); err != nil {
		return nil, errors.Join(err, src.Close())
	}
	h := src.Header
	f.of = h.ID
	h.ParentSessionID, h.ID = h.ID, f.options.ID
	h.StorageVersion, h.CreatedAt, h.Generation = StorageVersion, f.now, 1
	h.Spawn, h.Source, h.LegacyParentSessionPath, h.LegacySessionID, h.Extra = nil, nil, "", "", nil
	return &Snapshot{Header: h, NextSeq: src.NextSeq, Records: f.records(src), Close: src.Close}, nil
}

// survey looks at everything once before anything is copied: what must refuse
// the fork, where the lanes stand, which path is meant, and that nothing is
// missing on the way to it.
func (f *forker) survey(src *Snapshot) error {
	f.leaf = make(map[string]LeafID)
	f.parent = make(map[string]string)
	for r, err := range src.Skeleton() {
		if err != nil {
			return err
		}
		switch {
		case r.Entry != nil:
			if err := f.stand(r.Entry.ParentID, "entry "+r.Entry.ID); err != nil {
				return err
			}
			f.parent[r.Entry.ID] = r.Entry.ParentID
		case r.Kind != KindValue:
		case r.Address.Namespace == "pi.lane.leaf":
			leaf, err := decode[LeafID](r.Value, nil)
			if err != nil {
				return &BadValue{Address: r.Address, Err: err}
			}
			f.leaf[r.Address.Key] = leaf
		case !forkable(r.Address):
			return &InvalidFork{Reason: fmt.Sprintf("the source holds %s, which this drover does not know how to copy", r.Address)}
		}
	}
	for lane, leaf := range f.leaf {
		if err := f.stand(string(leaf), "lane "+lane); err != nil {
			return err
		}
		f.lanes = append(f.lanes, lane)
	}
	if f.options.Scope == ForkBranch {
		return f.choose()
	}
	return nil
}

// stand refuses a source whose entry is gone while something stands on it: the
// fork would look like a shorter conversation.
func (f *forker) stand(id, by string) error {
	if _, known := f.parent[id]; id != "" && !known {
		return MissingEntry(id, by)
	}
	return nil
}

// forkable reports whether a reserved value is known; what is known but never
// copied counts too.
func forkable(a Address) bool {
	if !a.Reserved() {
		return true
	}
	switch a.Namespace {
	case "pi.lane.leaf", "pi.lane.config", "pi.lane.state", "pi.lane.lastResult", "pi.session.name", "pi.entry.label", "pi.pending.entry", "pi.pending.tool_output":
		return true
	}
	return strings.HasPrefix(a.Namespace, "pi.op.") || strings.HasPrefix(a.Namespace, "drover.")
}

// choose finds the fork point and the path that leads to it.
func (f *forker) choose() error {
	lane := f.options.Lane
	if lane == "" {
		lane = MainLane
	}
	leaf, ok := f.leaf[lane]
	if !ok {
		return &UnknownLane{Lane: lane}
	}
	f.lanes = []string{MainLane}
	f.point = leaf
	f.path = make(map[string]bool)
	f.walk(leaf)
	if id := f.options.EntryID; id != "" {
		if _, known := f.parent[id]; !known {
			return &UnknownTarget{ID: id}
		}
		if !f.path[id] {
			return &InvalidFork{Reason: fmt.Sprintf("entry %s is not on the path of lane %s", id, lane)}
		}
		f.point = LeafID(id)
	}
	if f.options.Before {
		if f.point == "" {
			return &InvalidFork{Reason: "there is no entry to stand before"}
		}
		f.point = LeafID(f.parent[string(f.point)])
	}
	clear(f.path)
	f.walk(f.point)
	return nil
}

func (f *forker) walk(from LeafID) {
	for id := string(from); id != "" && !f.path[id]; id = f.parent[id] {
		f.path[id] = true
	}
}

// records are those of the fork, with the sequence numbers of their sources.
func (f *forker) records(src *Snapshot) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		f.entries = 0
		for r, err := range src.Records {
			keep := true
			if err == nil {
				r, keep, err = f.record(r)
			}
			if !keep {
				continue
			}
			if r.Entry != nil {
				f.entries++
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (f *forker) record(r Record) (Record, bool, error) {
	switch {
	case r.Usage != nil:
		return r, false, nil
	case r.Entry != nil:
		return r, f.path == nil || f.path[r.Entry.ID], nil
	case !r.Address.Reserved():
		return r, f.path == nil, nil
	case r.Kind != KindValue:
		return r, false, nil
	}
	switch r.Address.Namespace {
	case "pi.session.name", "drover.session.cwd":
		return r, true, nil
	case "pi.entry.label":
		return r, f.path == nil || f.path[r.Address.Key], nil
	case "pi.lane.leaf", "pi.lane.config", "pi.lane.state":
		return f.lane(r)
	}
	return r, false, nil
}

// lane copies a lane's value: its state starts anew, and in branch scope the one
// lane becomes main, at the fork point.
func (f *forker) lane(r Record) (Record, bool, error) {
	if r.Address.Namespace == "pi.lane.state" {
		raw, err := encode(LaneState{PendingNextRun: []string{}})
		if err != nil {
			return r, true, err
		}
		r.Value = raw
	}
	if f.path == nil {
		return r, true, nil
	}
	lane := f.options.Lane
	if lane == "" {
		lane = MainLane
	}
	if r.Address.Key != lane {
		return r, false, nil
	}
	r.Address.Key = MainLane
	if r.Address.Namespace == "pi.lane.leaf" {
		raw, err := f.point.AppendJSON(nil)
		r.Value = json.RawMessage(raw)
		return r, true, err
	}
	return r, true, nil
}
