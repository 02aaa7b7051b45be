package export

import (
	"context"
	"fmt"
	"iter"

	"github.com/drover-run/drover/internal/redact"
	"github.com/drover-run/drover/pkg/store"
)

// Options choose what of a session goes out.
type Options struct {
	// Lane is the lane whose path counts as what happened; "" is main.
	Lane string
	// AllBranches takes the whole tree instead of the lane's path.
	AllBranches bool
	// Redact replaces text on the way out; nil changes nothing.
	Redact *redact.Rules
}

// Source is one moment of a session, ready to be written. It is not safe for
// concurrent use.
type Source struct {
	o      Options
	reader store.Reader
	snap   *store.Snapshot

	header store.Header
	name   string
	config *store.LaneConfiguration // of the lane; nil while it has none
	busy   string                   // a lane with an open operation, "" when all are idle
	labels map[int32]string
	lanes  map[int32][]string // by leaf; none is before the first entry

	tree
	leaf int32
}

// Open reads the structure of a session. The lane must exist: otherwise it fails
// with *store.UnknownLane. With redaction every payload is looked at here, so
// that nothing has been written when *StructuralMatch or *EmptyKey refuses. The
// reader stays the caller's and must outlive the source.
func Open(ctx context.Context, r store.Reader, o Options) (*Source, error) {
	if o.Lane == "" {
		o.Lane = store.MainLane
	}
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	s := &Source{o: o, reader: r, snap: snap, header: snap.Header, leaf: none}
	if err = s.index(); err == nil {
		err = s.checkRedaction(ctx)
	}
	if err != nil {
		_ = snap.Close()
		return nil, err
	}
	return s, nil
}

// Close gives the moment up; closing twice is legal.
func (s *Source) Close() error { return s.snap.Close() }

// values collects what stands beside the tree.
type values struct {
	leaves, labels map[string]string
	seen           bool // the lane exists
	leaf           string
}

func (s *Source) index() error {
	v := values{leaves: map[string]string{}, labels: map[string]string{}}
	s.ids = newIDs()
	for r, err := range s.snap.Skeleton() {
		switch {
		case err != nil:
			return fmt.Errorf("read session: %w", err)
		case r.Entry != nil:
			err = s.add(r.Entry.Structure)
		case r.Kind == store.KindValue:
			err = s.value(r, &v)
		}
		if err != nil {
			return err
		}
	}
	if !v.seen {
		return &store.UnknownLane{Lane: s.o.Lane}
	}
	return s.settle(v)
}

// value takes over the values that an export shows.
func (s *Source) value(r store.Record, v *values) error {
	raw := store.StoredValue{Address: r.Address, Seq: r.Seq, Value: r.Value}
	lane := r.Address.Key
	switch r.Address.Namespace {
	case store.LaneLeaves().Address().Namespace:
		leaf, err := store.LaneLeaf(lane).Decode(raw)
		if v.leaves[lane] = string(leaf); lane == s.o.Lane {
			v.seen, v.leaf = true, string(leaf)
		}
		return err
	case store.LaneStateOf(lane).Address().Namespace:
		state, err := store.LaneStateOf(lane).Decode(raw)
		if state.CurrentOperationID != "" {
			s.busy = lane
		}
		return err
	case store.LaneConfig(lane).Address().Namespace:
		if lane != s.o.Lane {
			return nil
		}
		c, err := store.LaneConfig(lane).Decode(raw)
		s.config = &c
		return err
	case store.SessionName().Address().Namespace:
		name, err := store.SessionName().Decode(raw)
		s.name, _ = s.o.Redact.Text(name)
		return err
	case store.EntryLabels().Address().Namespace:
		label, err := store.EntryLabel(lane).Decode(raw)
		v.labels[lane], _ = s.o.Redact.Text(label)
		return err
	}
	return nil
}

// settle resolves what values name and marks the path.
func (s *Source) settle(v values) error {
	s.labels, s.lanes = make(map[int32]string, len(v.labels)), make(map[int32][]string, len(v.leaves))
	for id, label := range v.labels {
		if at, ok := s.ids.find(id); ok { // a label may name what is gone
			s.labels[at] = label
		}
	}
	for lane, leaf := range v.leaves {
		at, err := s.find(leaf, lane)
		if err != nil {
			return err
		}
		s.lanes[at] = append(s.lanes[at], lane)
	}
	var err error
	if s.leaf, err = s.find(v.leaf, s.o.Lane); err != nil {
		return err
	}
	s.markPath(s.leaf)
	if s.o.AllBranches {
		s.countBranches()
	}
	s.redactHeader()
	return nil
}

func (s *Source) find(leaf, lane string) (int32, error) {
	if leaf == "" {
		return none, nil
	}
	at, ok := s.ids.find(leaf)
	if !ok {
		return none, store.MissingEntry(leaf, "lane "+lane)
	}
	return at, nil
}

// wanted tells whether an entry goes out.
func (s *Source) wanted(i int32) bool { return s.o.AllBranches || s.marks[i]&onPath != 0 }

// LeftOut counts the entries that do not go out, since they are on other branches than
// the lane's path.
func (s *Source) LeftOut() int {
	n := 0
	for i := range s.ids.len() {
		if !s.wanted(int32(i)) {
			n++
		}
	}
	return n
}

// entries yields the entries that go out and that pick agrees to, in sequence
// order, redacted.
func (s *Source) entries(ctx context.Context, pick func(int32) bool) iter.Seq2[int32, *store.Entry] {
	return func(yield func(int32, *store.Entry) bool) {
		next := int32(0)
		for r, err := range s.snap.Records {
			if err == nil && next%256 == 0 {
				err = context.Cause(ctx)
			}
			if err != nil {
				s.err = fmt.Errorf("read session: %w", err)
				return
			}
			if r.Entry == nil {
				continue
			}
			at := next
			if next++; !s.wanted(at) || !pick(at) {
				continue
			}
			if s.o.Redact != nil {
				r.Entry.Payload = s.o.Redact.Entry(r.Entry.Payload).JSON
			}
			if !yield(at, r.Entry) {
				return
			}
		}
	}
}
