package subsession

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Where a child's session lives.
const (
	Local  = "local"  // in the repository of its parent
	Remote = "remote" // with another service, whatever the repository holds
)

// Ref is what a deletion needs to know of a parent's record of one child.
type Ref struct {
	Key               string // the address's key
	SubSessionID      string
	Location          string // Local or Remote
	OutcomeGeneration int64
}

// Refs covers the refs of a parent.
func Refs() store.Prefix[json.RawMessage] {
	return store.NewPrefix[json.RawMessage]("drover.subs.ref", "")
}

// Floor is the lower bound of the generation of any ref that a session inserts
// from now on; absent it is 0.
func Floor() store.Value[int64] { return store.NewValue[int64]("drover.subs.floor", "") }

// BadRef is a stored ref that cannot be trusted: without a legal location nobody
// can say whether its child may be deleted.
type BadRef struct {
	SessionID string
	Key       string
	Reason    string
}

func (e *BadRef) Error() string {
	return fmt.Sprintf("session %s: ref %q %s", e.SessionID, e.Key, e.Reason)
}

// ReadRefs reads the refs of a session in the order of their keys. It fails with
// *BadRef.
func ReadRefs(ctx context.Context, q store.Queries) ([]Ref, error) {
	values, err := q.ScanValues(ctx, Refs().Address())
	if err != nil {
		return nil, err
	}
	refs := make([]Ref, len(values))
	for i, v := range values {
		bad := func(reason string) error {
			return &BadRef{SessionID: q.Header().ID, Key: v.Address.Key, Reason: reason}
		}
		if rawjson.KindOf(v.Value) != rawjson.Object {
			return nil, bad("is no object")
		}
		r := Ref{Key: v.Address.Key}
		r.SubSessionID, _ = rawjson.GetString(v.Value, "subSessionId")
		r.Location, _ = rawjson.GetString(v.Value, "location")
		r.OutcomeGeneration, _ = rawjson.GetInt(v.Value, "outcomeGeneration")
		switch {
		case store.CheckID(r.SubSessionID) != nil:
			return nil, bad("names no session")
		case r.Location != Local && r.Location != Remote:
			return nil, bad("says neither local nor remote")
		case r.OutcomeGeneration < 0:
			return nil, bad("has a negative generation")
		}
		refs[i] = r
	}
	return refs, nil
}

// Spawn is the spawn lineage in the header of a child.
type Spawn struct {
	ParentSessionID string
	RootSessionID   string
	Depth           int64
	RefKey          string
	Location        string // anything but Remote means that the child follows its parent
}

// ParseSpawn reads the spawn member of a header, false when it names no parent.
func ParseSpawn(raw json.RawMessage) (Spawn, bool) {
	if rawjson.KindOf(raw) != rawjson.Object {
		return Spawn{}, false
	}
	var s Spawn
	s.ParentSessionID, _ = rawjson.GetString(raw, "parentSessionId")
	s.RootSessionID, _ = rawjson.GetString(raw, "rootSessionId")
	s.Depth, _ = rawjson.GetInt(raw, "depth")
	s.RefKey, _ = rawjson.GetString(raw, "refKey")
	s.Location, _ = rawjson.GetString(raw, "location")
	return s, s.ParentSessionID != ""
}
