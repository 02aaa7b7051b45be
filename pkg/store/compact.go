package store

import "context"

// Compacter is implemented by owned sessions whose file can be made smaller
// without changing anything that a reader sees: entries, values, lists and
// ledger keep their sequence numbers, lists their cursors, and the next number
// stays what it is (spec §1.7).
type Compacter interface {
	// Compact rewrites the file unless less of it than MinDead is dead or the
	// result would not be smaller (D17); Changed tells. The session stays open,
	// owned and usable, whether it succeeds or not. A crash at any point leaves
	// the old file or the new one, complete.
	Compact(ctx context.Context, o CompactOptions) (Compaction, error)
}

// CompactOptions govern one compaction.
type CompactOptions struct {
	// MinDead is the part of the file, from 0 to 1, that must be dead for it to
	// be rewritten; 0 always tries.
	MinDead float64
}

// CompactionPlanner is implemented by readers of sessions that can be compacted.
type CompactionPlanner interface {
	// PlanCompaction measures what a compaction of what the reader sees would do.
	// It needs no ownership and changes nothing of the session.
	PlanCompaction(ctx context.Context, o CompactOptions) (Compaction, error)
}

// Compaction is what a compaction did. Bytes are those of the session file and
// of the log beside it. Records are what the file physically holds: a superseded
// or deleted write counts where the encoding still carries it.
type Compaction struct {
	BytesBefore   int64
	BytesAfter    int64
	RecordsBefore int64
	RecordsAfter  int64
	Changed       bool
}

// IndexRepairer is implemented by owned sessions that keep derived data in their
// file. RepairIndex makes it anew from entries and ledger, all of it or nothing:
// the branch index and the stats, which carry no authority (spec §2.6, D61).
type IndexRepairer interface {
	RepairIndex(ctx context.Context) error
}
