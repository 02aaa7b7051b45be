package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/rawjson"
)

// builtins are the namespaces of spec §1.3 and what lives in them.
var builtins = map[string]WriteKind{
	"pi.lane.leaf": KindValue, "pi.lane.config": KindValue, "pi.lane.state": KindValue, "pi.lane.lastResult": KindValue,
	"pi.op.meta": KindValue, "pi.op.state": KindValue, "pi.op.tool_args": KindValue, "pi.op.tool_memo": KindValue,
	"pi.op.preparation": KindValue, "pi.pending.entry": KindValue, "pi.pending.tool_output": KindValue,
	"pi.pending.assistant_frame": KindList, "pi.session.name": KindValue, "pi.entry.label": KindValue,
}

// laneValues are the raw values of one lane.
type laneValues struct {
	leaf, config, state json.RawMessage
}

// addressed checks a surviving value or list element.
func (v *verifier) addressed(r *Record) {
	where := r.Address.String()
	if err := r.Address.Check(); err != nil {
		v.fail("invalid_address", where, "%v", err)
	}
	v.utf8(r.Value, where)
	if err := rawjson.Valid(r.Value); err != nil {
		v.fail("bad_value", where, "not JSON: %v", err)
		return
	}
	switch kind, seen := v.addresses[r.Address]; {
	case !seen:
		v.addresses[r.Address] = r.Kind
		v.namespace(r, where)
	case kind != r.Kind:
		v.fail("address_kind", where, "both a value and a list have this address")
	case kind == KindValue:
		v.fail("duplicate_value", where, "the value is stored twice")
	}
	if r.Kind == KindValue {
		v.builtin(r, where)
	}
}

// namespace checks the namespaces that are drover's own (spec §1.3).
func (v *verifier) namespace(r *Record, where string) {
	ns := r.Address.Namespace
	switch kind, builtin := builtins[ns]; {
	case builtin && kind != r.Kind:
		v.fail("address_kind", where, "a %s where a %s belongs", kindName(r.Kind), kindName(kind))
	case !builtin && (ns == "pi" || strings.HasPrefix(ns, "pi.")) && !v.namespaces[ns]:
		v.namespaces[ns] = true
		v.warn("unknown_namespace", where, "namespace %s is reserved and unknown", ns)
	}
}

func kindName(k WriteKind) string {
	if k == KindList {
		return "list"
	}
	return "value"
}

// builtin checks the values whose shape this package knows.
func (v *verifier) builtin(r *Record, where string) {
	switch r.Address.Namespace {
	case "pi.session.name", "pi.entry.label":
		if rawjson.KindOf(r.Value) != rawjson.String {
			v.fail("bad_value", where, "not a string")
		}
	case "pi.pending.entry":
		if err := checkPending(r.Value); err != nil {
			v.fail("bad_value", where, "%v", err)
		}
	default:
		v.laneValue(r.Address, r.Value)
	}
}

// laneValue keeps what is a lane's until every entry is known.
func (v *verifier) laneValue(a Address, value json.RawMessage) {
	switch a.Namespace {
	case "pi.lane.leaf":
		v.lane(a.Key).leaf = value
	case "pi.lane.config":
		v.lane(a.Key).config = value
	case "pi.lane.state":
		v.lane(a.Key).state = value
	case "pi.lane.lastResult":
		v.lane(a.Key)
	}
}

func checkPending(raw json.RawMessage) error {
	p, err := decodePending(raw)
	switch {
	case err != nil:
		return err
	case p.Type != TypeMessage && p.Type != TypeCustom:
		return fmt.Errorf("pending entry has type %q", p.Type)
	case p.Type == TypeMessage && rawjson.KindOf(p.Payload) != rawjson.Object:
		return errors.New("pending message has no message")
	case p.Type == TypeCustom && p.CustomType == "":
		return errors.New("pending custom entry has no custom type")
	}
	return nil
}

func (v *verifier) lane(name string) *laneValues {
	l := v.lanes[name]
	if l == nil {
		l = &laneValues{}
		v.lanes[name] = l
	}
	return l
}

// checkLanes judges the lanes, labels and pending entries once every entry is
// known.
func (v *verifier) checkLanes() {
	if v.lanes[MainLane] == nil {
		v.fail("no_main", "lane "+MainLane, "the session has no lane main")
	}
	names := make([]string, 0, len(v.lanes))
	for name := range v.lanes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v.checkLane(name, v.lanes[name])
	}
	v.checkTargets()
}

func (v *verifier) checkLane(name string, l *laneValues) {
	where := "lane " + name
	if err := CheckLane(name); err != nil {
		v.warn("lane_name", where, "%v", err)
	}
	if l.leaf == nil {
		v.fail("lane_incomplete", where, "the lane has no leaf")
	} else if leaf, err := decode[LeafID](l.leaf, nil); err != nil {
		v.fail("bad_value", LaneLeaf(name).Address().String(), "neither an entry id nor null")
	} else if leaf != "" && !v.isEntry(string(leaf)) {
		v.fail("lane_leaf", where, "leaf %s does not exist", leaf)
	}
	idle := false
	if l.state == nil {
		v.fail("lane_incomplete", where, "the lane has no state")
	} else if s, err := decodeLaneState(l.state); err != nil {
		v.fail("bad_value", LaneStateOf(name).Address().String(), "%v", err)
	} else {
		idle = s.CurrentOperationID == ""
	}
	if l.config != nil {
		if err := checkLaneConfig(l.config); err != nil {
			v.fail("bad_value", LaneConfig(name).Address().String(), "%v", err)
		}
	} else if name != MainLane || !idle && l.state != nil {
		v.fail("lane_incomplete", where, "the lane has no configuration")
	}
}

// decodeLaneState wants the total value: absence is no information.
func decodeLaneState(raw json.RawMessage) (LaneState, error) {
	if _, ok := rawjson.Get(raw, "currentOperationId"); !ok {
		return LaneState{}, errors.New("lane state has no currentOperationId")
	}
	if pending, ok := rawjson.Get(raw, "pendingNextRun"); !ok || rawjson.KindOf(pending) != rawjson.Array {
		return LaneState{}, errors.New("lane state has no pendingNextRun")
	}
	return decode[LaneState](raw, nil)
}

func checkLaneConfig(raw json.RawMessage) error {
	cfg, err := decode[LaneConfiguration](raw, nil)
	switch {
	case err != nil:
		return err
	case cfg.Model.Provider == "" || cfg.Model.ModelID == "":
		return errors.New("lane configuration names no model")
	case cfg.ThinkingLevel == "":
		return errors.New("lane configuration has no thinkingLevel")
	case cfg.ActiveToolNames == nil:
		return errors.New("lane configuration has no activeToolNames")
	}
	return nil
}

func (v *verifier) isEntry(id string) bool { return v.named(id).kind == IDEntry }

func (v *verifier) checkTargets() {
	var targets []Address
	for a := range v.addresses {
		if a.Namespace == "pi.entry.label" || a.Namespace == "pi.pending.entry" {
			targets = append(targets, a)
		}
	}
	slices.SortFunc(targets, func(a, b Address) int { return strings.Compare(a.String(), b.String()) })
	for _, a := range targets {
		switch placed := v.isEntry(a.Key); {
		case a.Namespace == "pi.entry.label" && !placed:
			v.warn("label_target", a.String(), "the label's entry does not exist")
		case a.Namespace == "pi.pending.entry" && placed:
			v.fail("pending_placed", a.String(), "the pending content is an entry already")
		case a.Namespace == "pi.pending.entry" && v.named(a.Key).kind == IDUsage:
			v.fail("pending_placed", a.String(), "the reserved id is a usage row")
		}
	}
}
