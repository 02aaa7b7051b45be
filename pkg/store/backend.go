package store

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"time"
)

// StorageVersion is the storage version this binary writes (spec §7.3).
const StorageVersion = 2

// Queries answers questions about one session. Every result is a copy or
// immutable: nothing a later commit does changes it. After Close every call
// returns ErrClosed.
type Queries interface {
	// Header describes the session as its store states it.
	Header() Header
	// Entries returns the entries of the ids that exist.
	Entries(ctx context.Context, ids []string) (map[string]Entry, error)
	// Value returns the current value at an address, false when there is none.
	Value(ctx context.Context, addr Address) (StoredValue, bool, error)
	// ScanValues returns the values of a namespace whose key starts with
	// prefix.Key, in byte order of their keys.
	ScanValues(ctx context.Context, prefix Address) ([]StoredValue, error)
	// ReadList returns one page of a list; an absent list is empty.
	ReadList(ctx context.Context, addr Address, q ListQuery) ([]ListElement, error)
	// ScanBranch reads a path with payloads; an unknown start is ErrNotFound.
	ScanBranch(ctx context.Context, q BranchQuery) ([]Entry, error)
	// ScanBranchStructure is ScanBranch without payloads.
	ScanBranchStructure(ctx context.Context, q BranchQuery) ([]Structure, error)
	// ScanEntries reads the tree in sequence order.
	ScanEntries(ctx context.Context, q EntryQuery) ([]Entry, error)
	// ScanUsage reads the ledger in sequence order.
	ScanUsage(ctx context.Context, q UsageQuery) ([]UsageRow, error)
	// Stats returns the maintained projection.
	Stats(ctx context.Context) (Stats, error)
	// Snapshot returns the surviving records of one coherent moment.
	Snapshot(ctx context.Context) (*Snapshot, error)
}

// Reader is a read-only view of a session (D9).
type Reader interface {
	Queries
	// Close releases the reader; closing twice is legal.
	Close() error
}

// Backend is the storage of one open, owned session (spec §1.5, §1.7).
//
// Commit is all-or-none and survives the death of the process once it returned.
// A transaction that Prepare refuses returns *InvalidWrite and changes nothing;
// any other failure of an admitted commit leaves the disk at the last good
// commit, closes the backend for writing and is the caller's fault to report.
// Close drains admitted commits, then gives up ownership.
type Backend interface {
	Reader
	Commit(ctx context.Context, tx Tx) (CommitResult, error)
	// Check reports, as *Lost, a file that was deleted or replaced, or an owner
	// that was fenced (D12). It costs a stat or a row and is not called on every
	// append.
	Check(ctx context.Context) error
}

// Snapshot is one coherent moment of a session: its header and surviving
// records in sequence order. NextSeq is the high-water mark. Whoever took it
// closes it; closing twice is legal.
type Snapshot struct {
	Header  Header
	NextSeq int64
	// Size is about how many bytes the records have, 0 where that is not known.
	Size    int64
	Records iter.Seq2[Record, error]
	// Outline is Records without the payloads of entries and ledger rows, where
	// leaving them out saves reading them; nil elsewhere. See Skeleton.
	Outline iter.Seq2[Record, error]
	// Judged is Records for a check, of a reader that judged what it read when it
	// was opened; nil elsewhere. Sound payloads of entries and ledger rows are left
	// out, and a verdict is in their place. A record is only good until the next.
	Judged iter.Seq2[Record, error]
	// Place tells what an id names and, of an entry, how many entries come before
	// it. Judged comes with it where the reader refuses a session in which an id is
	// given twice or a parent is no earlier entry; it is nil elsewhere.
	Place func(id string) (n int, kind IDKind)
	Close func() error
}

// Skeleton are the records for somebody who looks at no payload of an entry or a
// ledger row: they may have none. Values and list elements are complete.
func (s *Snapshot) Skeleton() iter.Seq2[Record, error] {
	if s.Outline != nil {
		return s.Outline
	}
	return s.Records
}

// OpenOptions govern an owning open.
type OpenOptions struct {
	// Wait is how long to wait for a session that another process owns.
	Wait time.Duration
	// LeaseTTL is the lifetime of a SQLite lease without renewal; 0 means 30 s.
	LeaseTTL time.Duration
	// PowerSafe makes every commit survive power loss (D13).
	PowerSafe bool
	// Now is the clock, Unix ms; nil means the system's.
	Now func() int64
	// Owner describes this owner in the lease.
	Owner OwnerInfo
	// Socket names the owner socket once the session file and the fence are known
	// (D24); it stands in for Owner.Socket. Nil names none.
	Socket func(path string, fence int64) string
}

// Describe is what an owner that has got a fence tells about itself.
func (o OpenOptions) Describe(path string, fence int64) OwnerInfo {
	info := o.Owner
	if o.Socket != nil {
		info.Socket = o.Socket(path, fence)
	}
	return info
}

// OwnerInfo is what an owner tells about itself beyond its process.
type OwnerInfo struct {
	Command string // what it is doing, such as "prompt"
	Socket  string // path of its owner socket, "" when it has none
}

// BuildOptions govern the writing of a whole new store.
type BuildOptions struct {
	// Replace allows an existing file that nobody owns to be replaced; otherwise
	// it is ErrExists.
	Replace bool
	// NoSync leaves out the final fsync, for measurements only.
	NoSync bool
	// Sweep removes what interrupted builds of this path have left. The caller
	// knows that no other runs.
	Sweep bool
	// Judge, if set, looks at the complete new store, which lies at temp, before it
	// gets its name. Its error leaves nothing of it.
	Judge func(ctx context.Context, temp string) error
	// Like, if set, is the file that the new one stands in for under another name:
	// its mode and owner are kept, as those of a file that is replaced are.
	Like fs.FileInfo
}

// Driver creates, opens and finds the stores of one encoding.
type Driver interface {
	// Name is the encoding's name in flags and JSON: memory, jsonl, sqlite.
	Name() string
	// Ext is the file extension with its dot.
	Ext() string
	// Build writes a complete new store at path: temporary file, fsync, rename.
	// A failure leaves nothing behind.
	Build(ctx context.Context, path string, snap *Snapshot, o BuildOptions) error
	// Open takes ownership of the store at path. It fails with *Held, *Corrupt,
	// *NewerVersion, *Legacy, or an error that wraps fs.ErrNotExist.
	Open(ctx context.Context, path string, o OpenOptions) (Backend, error)
	// View reads the store without owning or changing it (D9, D10).
	View(ctx context.Context, path string) (Reader, error)
	// Header reads no more of the store than its header.
	Header(ctx context.Context, path string) (Header, error)
	// Lease tells who owns the store now, nil when nobody does.
	Lease(ctx context.Context, path string) (*Lease, error)
	// Claim takes ownership of the store at path in order to remove it. Damage is
	// no obstacle, as the content is not looked at; otherwise it fails as Open does.
	Claim(ctx context.Context, path string, o OpenOptions) (Claim, error)
	// Delete is Claim and Remove, and may refuse a damaged store. Of a store that is not there it removes what an
	// interrupted deletion left beside it, and fails with fs.ErrNotExist all the
	// same.
	Delete(ctx context.Context, path string, o OpenOptions) error
	// List returns the paths of the stores directly in dir, in byte order.
	List(ctx context.Context, dir string) ([]string, error)
}

// Claim is the ownership of a store that is to be removed.
type Claim interface {
	// Remove unlinks the side files, then the store, which goes last: a crash in
	// between leaves a complete session or none.
	Remove(ctx context.Context) error
	// Close gives the ownership up, also of a store that is removed.
	Close() error
}

// DeleteClaimed is a driver's Delete in terms of its Claim.
func DeleteClaimed(ctx context.Context, c Claim) error {
	return errors.Join(c.Remove(ctx), c.Close())
}

// LeaseReader is a view that also tells who owned the session at the moment that it
// sees, nil when nobody did: the lease of an encoding that keeps it with the rest.
type LeaseReader interface {
	Reader
	Lease(ctx context.Context) (*Lease, error)
}

// Judging is implemented by drivers that read every payload of a session when
// they open it, and can judge it then.
type Judging interface {
	// ViewJudged is View for Verify: the snapshots of its reader are judged.
	ViewJudged(ctx context.Context, path string) (Reader, error)
}

// ViewToVerify is View in the way that makes a full Verify fast.
func ViewToVerify(ctx context.Context, d Driver, path string) (Reader, error) {
	if j, ok := d.(Judging); ok {
		return j.ViewJudged(ctx, path)
	}
	return d.View(ctx, path)
}

// Textual is implemented by readers of files that hold every text of their records
// in one piece, as JSON spells it. Who searches the bytes of such a file need not
// search its records, unless for what can only be seen in decoded text.
type Textual interface {
	Reader
	Textual() // tells nothing but that it is so
}

// Lease names the owner of a session (D19, D23).
type Lease struct {
	OwnerID   string `json:"ownerId"`
	Fence     int64  `json:"fence"`
	ExpiresAt *int64 `json:"expiresAt"` // Unix ms; null where a lock, not a time, decides
	Host      string `json:"host"`
	PID       int    `json:"pid"`
	Since     int64  `json:"since"` // Unix ms
	Live      bool   `json:"live"`
	Command   string `json:"-"`
	Socket    string `json:"-"`
}

// Getter is the part of a reader that typed reads need; Reader, Session, Tree
// and Mutator all have it.
type Getter interface {
	Value(ctx context.Context, addr Address) (StoredValue, bool, error)
}

// SeqGetter is implemented by a store that can tell which write set a value
// without reading it.
type SeqGetter interface {
	// ValueSeq is the sequence number of the value at an address, false without one.
	ValueSeq(ctx context.Context, addr Address) (int64, bool, error)
}

// Unchanged reports that the value at an address is still the one that the write
// of that sequence number set. False means that it has to be read to know.
func Unchanged(ctx context.Context, q Getter, addr Address, seq int64) bool {
	switch x := q.(type) {
	case *Mutator:
		q = x.Queries
	case *Session:
		q = x.Queries
	}
	s, ok := q.(SeqGetter)
	if !ok {
		return false
	}
	now, found, err := s.ValueSeq(ctx, addr)
	return err == nil && found && now == seq
}

// Stored is a decoded value with the sequence number of its last set.
type Stored[T any] struct {
	Address Address
	Value   T
	Seq     int64
}

// Get reads and decodes the value at an address.
func Get[T any](ctx context.Context, r Getter, v Value[T]) (Stored[T], bool, error) {
	if err := v.addr.Check(); err != nil {
		return Stored[T]{}, false, err
	}
	raw, ok, err := r.Value(ctx, v.addr)
	if err != nil || !ok {
		return Stored[T]{}, false, err
	}
	x, err := v.Decode(raw)
	return Stored[T]{raw.Address, x, raw.Seq}, err == nil, err
}

// Decode decodes what is stored at the address. It fails with *BadValue.
func (v Value[T]) Decode(raw StoredValue) (T, error) {
	return decodeAt(raw.Address, raw.Value, v.decode)
}

// Scan reads and decodes the values that a prefix covers.
func Scan[T any](ctx context.Context, r interface {
	ScanValues(ctx context.Context, prefix Address) ([]StoredValue, error)
}, p Prefix[T]) ([]Stored[T], error) {
	raws, err := r.ScanValues(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	out := make([]Stored[T], len(raws))
	for i, raw := range raws {
		x, err := decodeAt(raw.Address, raw.Value, p.decode)
		if err != nil {
			return nil, err
		}
		out[i] = Stored[T]{raw.Address, x, raw.Seq}
	}
	return out, nil
}

// Element is a decoded list element.
type Element[T any] struct {
	Seq   int64
	Value T
}

// ReadList reads and decodes one page of a list.
func ReadList[T any](ctx context.Context, r interface {
	ReadList(ctx context.Context, addr Address, q ListQuery) ([]ListElement, error)
}, l List[T], q ListQuery) ([]Element[T], error) {
	raws, err := r.ReadList(ctx, l.addr, q)
	if err != nil {
		return nil, err
	}
	out := make([]Element[T], len(raws))
	for i, raw := range raws {
		x, err := decodeAt(l.addr, raw.Value, l.decode)
		if err != nil {
			return nil, err
		}
		out[i] = Element[T]{raw.Seq, x}
	}
	return out, nil
}

func decodeAt[T any](addr Address, raw json.RawMessage, custom func(json.RawMessage) (T, error)) (T, error) {
	x, err := decode(raw, custom)
	if err != nil {
		var zero T
		return zero, &BadValue{Address: addr, Err: err}
	}
	return x, nil
}
