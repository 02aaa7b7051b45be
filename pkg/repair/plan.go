package repair

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// plan says what becomes of each readable record, by its place among them.
type plan struct {
	skip   map[int]bool
	parent map[int]string // of entries that hang elsewhere now
	value  map[int]json.RawMessage
	extra  []store.Record
	next   int64 // the first sequence number after all
	oldest int64 // the first time that an entry was stored at, Unix ms
	done   Salvaged
}

// surveyor reads the records once and makes the plan.
type surveyor struct {
	*plan
	refused *refusals
	n       int
	last    int64
	kinds   map[string]store.IDKind
	gone    map[string]string // parents of entries that are not kept
	stand   []standing        // the kept entries, in their order
	cells   map[store.Address]store.WriteKind
	lanes   map[string]*lane
	targets []placed // values that belong to an entry
}

// placed is a value of an address and its place among the records.
type placed struct {
	n     int
	addr  store.Address
	seq   int64
	value json.RawMessage
}

func (s *salvage) survey() (*plan, error) {
	v := &surveyor{
		plan:    &plan{skip: map[int]bool{}, parent: map[int]string{}, value: map[int]json.RawMessage{}, next: 1},
		refused: s.refused, kinds: map[string]store.IDKind{}, gone: map[string]string{},
		cells: map[store.Address]store.WriteKind{}, lanes: map[string]*lane{},
	}
	if s.src.HeaderLost != "" {
		v.lose(store.Loss{Code: "header", Where: "header", Message: s.src.HeaderLost})
	}
	for r, err := range s.src.Records(v.lose) {
		if err != nil {
			return nil, err
		}
		if code, why := v.take(&r); code != "" {
			v.skip[v.n] = true
			v.lose(store.Loss{Code: code, Where: whereOf(&r), Message: why})
		}
		v.n++
	}
	v.settle()
	return v.plan, nil
}

func (v *surveyor) lose(l store.Loss) {
	if l.EntryID != "" && v.kinds[l.EntryID] == store.IDFree {
		v.gone[l.EntryID] = l.ParentID
	}
	v.done.Lost = append(v.done.Lost, l)
}

func (v *surveyor) change(code, where, format string, args ...any) {
	v.done.Changed = append(v.done.Changed, store.Loss{Code: code, Where: where, Message: fmt.Sprintf(format, args...)})
}

func whereOf(r *store.Record) string {
	switch {
	case r.Entry != nil:
		return "entry " + r.Entry.ID
	case r.Usage != nil:
		return "usage " + r.Usage.ID
	}
	return r.Address.String()
}

// take decides on one record; a code says that it is not kept, and why.
func (v *surveyor) take(r *store.Record) (code, why string) {
	if r.Seq <= v.last {
		return "order", fmt.Sprintf("its sequence number %d does not rise", r.Seq)
	}
	switch {
	case r.Entry != nil:
		code, why = v.entry(r.Entry)
	case r.Usage != nil:
		code, why = v.usage(r.Usage)
	default:
		code, why = v.addressed(r)
	}
	if code == "" {
		v.last, v.next = r.Seq, r.Seq+1
	}
	return code, why
}

func (v *surveyor) entry(e *store.Entry) (code, why string) {
	code, why = v.refused.entries[e.ID], "the checker refuses it"
	switch {
	case code != "":
	case e.ID == "" || v.kinds[e.ID] != store.IDFree:
		return "duplicate_id", "the id is taken"
	case rawjson.Valid(e.Payload) != nil || rawjson.KindOf(e.Payload) != rawjson.Object:
		code, why = "invalid_payload", "the payload is no JSON object"
	}
	if code != "" {
		v.gone[e.ID] = e.ParentID
		return code, why
	}
	parent := v.kept(e.ParentID)
	v.stand = append(v.stand, standing{e.ID, parent})
	if parent != e.ParentID {
		v.parent[v.n] = parent
		if parent == "" {
			v.change("reparented", "entry "+e.ID, "parent %s is lost, and no ancestor of it is known: the entry is a root", e.ParentID)
		} else {
			v.change("reparented", "entry "+e.ID, "parent %s is lost: the entry hangs on %s, the nearest kept ancestor", e.ParentID, parent)
		}
	}
	v.kinds[e.ID] = store.IDEntry
	v.done.Entries++
	if v.oldest == 0 || e.Timestamp < v.oldest {
		v.oldest = e.Timestamp
	}
	return "", ""
}

// kept is the nearest kept entry on the way from an entry to its root, "" where
// there is none or the way is not known.
func (v *surveyor) kept(id string) string {
	for range len(v.gone) + 1 {
		if id == "" || v.kinds[id] == store.IDEntry {
			return id
		}
		id = v.gone[id]
	}
	return ""
}

func (v *surveyor) usage(u *store.UsageRow) (code, why string) {
	switch {
	case v.refused.usage[u.ID] != "":
		return v.refused.usage[u.ID], "the checker refuses it"
	case u.ID == "" || v.kinds[u.ID] != store.IDFree:
		return "duplicate_id", "the id is taken"
	case u.Details != nil && rawjson.Valid(u.Details) != nil:
		return "invalid_usage", "its details are not JSON"
	}
	if _, err := message.ParseUsage(u.Usage); err != nil {
		return "invalid_usage", err.Error()
	}
	v.kinds[u.ID] = store.IDUsage
	v.done.Usage++
	return "", ""
}

func (v *surveyor) addressed(r *store.Record) (code, why string) {
	if code := v.refused.address(r.Address); code != "" {
		return code, "the checker refuses it"
	}
	if err := r.Address.Check(); err != nil {
		return "invalid_address", err.Error()
	}
	if err := rawjson.Valid(r.Value); err != nil {
		return "bad_value", "not JSON: " + err.Error()
	}
	switch kind, taken := v.cells[r.Address]; {
	case taken && (kind != r.Kind || kind == store.KindValue):
		return "address_kind", "the address is taken"
	case r.Kind == store.KindList:
		v.done.Elements++
	default:
		v.done.Values++
		v.note(placed{v.n, r.Address, r.Seq, r.Value})
	}
	v.cells[r.Address] = r.Kind
	return "", ""
}

// note keeps the values that depend on which entries are kept.
func (v *surveyor) note(p placed) {
	at := func() *lane {
		l := v.lanes[p.addr.Key]
		if l == nil {
			l = &lane{}
			v.lanes[p.addr.Key] = l
		}
		return l
	}
	switch p.addr.Namespace {
	case "pi.lane.leaf":
		at().leaf = &p
	case "pi.lane.config":
		at().config = &p
	case "pi.lane.state":
		at().state = &p
	case "pi.lane.lastResult":
		at()
	case "pi.entry.label":
		v.targets = append(v.targets, p)
	}
}

// settle decides what depends on all that is kept.
func (v *surveyor) settle() {
	for _, p := range v.targets {
		if v.kinds[p.addr.Key] != store.IDEntry {
			v.drop(p, "label_target", "the label's entry is not kept")
		}
	}
	if v.lanes[store.MainLane] == nil {
		v.lanes[store.MainLane] = &lane{}
	}
	names := slices.Sorted(maps.Keys(v.lanes))
	v.settleLeaves(names)
	for _, name := range names {
		v.settleState(name, v.lanes[name])
	}
}

func (v *surveyor) drop(p placed, code, why string) {
	v.skip[p.n] = true
	v.done.Values--
	v.lose(store.Loss{Code: code, Where: p.addr.String(), Message: why})
}
