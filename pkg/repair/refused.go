package repair

import (
	"strings"

	"github.com/drover-run/drover/pkg/store"
)

// refusals is what the checker found in a trial, and the next one leaves out.
type refusals struct {
	entries    map[string]string // code by id
	usage      map[string]string
	addresses  map[string]string
	operations bool
}

func newRefusals() *refusals {
	return &refusals{entries: map[string]string{}, usage: map[string]string{}, addresses: map[string]string{}}
}

// add takes over findings, and reports whether they change anything.
func (r *refusals) add(problems []store.Problem) bool {
	before := r.size()
	for _, p := range problems {
		r.one(p)
	}
	return r.size() > before
}

func (r *refusals) size() int {
	n := len(r.entries) + len(r.usage) + len(r.addresses)
	if r.operations {
		n++
	}
	return n
}

func (r *refusals) one(p store.Problem) {
	kind, id, _ := strings.Cut(p.Where, " ")
	switch {
	case p.Code == "lane_incomplete" && kind == "lane" && id != store.MainLane:
		// A lane without its configuration cannot be one; its entries stay. Main can,
		// as long as it is idle.
		for _, ns := range []string{"leaf", "config", "state", "lastResult"} {
			r.addresses["pi.lane."+ns+"/"+id] = p.Code
		}
	case !r.operations && (ofOperation(p.Where) || kind == "operation" || kind == "lane" || kind == "the"):
		r.operations = true
	case kind == "entry" && id != "":
		if p.Code == "placed_twice" || p.Code == "reserved_taken" {
			r.operations = true
			return
		}
		r.entries[id] = p.Code
	case kind == "usage" && id != "":
		r.usage[strings.TrimPrefix(id, "row ")] = p.Code
	default:
		r.addresses[p.Where] = p.Code
	}
}

// ofOperation tells the addresses that operations own.
func ofOperation(where string) bool {
	return strings.HasPrefix(where, "pi.op.") || strings.HasPrefix(where, "pi.pending.")
}

// address is the code that an address is refused with, "" when it is not.
func (r *refusals) address(a store.Address) string {
	if r.operations && ofOperation(a.Namespace) {
		return "operation"
	}
	return r.addresses[a.String()]
}
