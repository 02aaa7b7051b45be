package cli

import (
	"errors"
	"strings"
	"unicode"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// tagged is an expected refusal of the engine (spec §5.1).
type tagged interface {
	error
	Tag() string
}

// explainRefusal knows the expected refusals; nil for any other error.
func explainRefusal(err error) *failure {
	if t, ok := errors.AsType[tagged](err); ok {
		f := &failure{code: exitRefused, tag: snake(t.Tag()), details: refusalDetails(t)}
		switch f.tag {
		case "unknown_target", "unknown_skill", "unknown_template", "lane_not_found", "entry_not_found":
			f.code = exitNotFound
		}
		f.hint = refusalHint(t)
		return f
	}
	if e, ok := errors.AsType[*store.LaneBusy](err); ok {
		return &failure{code: exitRefused, tag: "lane_busy", details: func(o *object) {
			o.str("lane", e.Lane)
			o.str("operationId", e.OperationID)
		}}
	}
	if e, ok := errors.AsType[*store.UnknownLane](err); ok {
		return &failure{code: exitNotFound, tag: "lane_not_found", details: func(o *object) { o.str("lane", e.Lane) }}
	}
	if e, ok := errors.AsType[*store.UnknownTarget](err); ok {
		return &failure{code: exitNotFound, tag: "entry_not_found", details: func(o *object) { o.str("entryId", e.ID) }}
	}
	if e, ok := errors.AsType[*store.LaneExists](err); ok {
		return &failure{code: exitRefused, tag: "lane_exists", details: func(o *object) { o.str("lane", e.Lane) }}
	}
	if e, ok := errors.AsType[*store.KindTaken](err); ok {
		return &failure{code: exitRefused, tag: "address_kind", message: e.Error(), details: func(o *object) {
			o.str("namespace", e.Address.Namespace)
			o.str("key", e.Address.Key)
			o.str("kind", e.KindName())
		}}
	}
	if e, ok := errors.AsType[*store.InvalidID](err); ok {
		return &failure{code: exitUsage, tag: "usage", details: func(o *object) { o.str("id", e.ID) }}
	}
	if e, ok := errors.AsType[*store.InvalidLane](err); ok {
		return &failure{code: exitUsage, tag: "usage", details: func(o *object) {
			o.str("lane", e.Lane)
			o.str("reason", e.Reason)
		}}
	}
	if e, ok := errors.AsType[*store.TooLarge](err); ok {
		return &failure{code: exitRefused, tag: "invalid_message", details: func(o *object) {
			o.str("reason", e.Error())
			o.int("size", e.Size)
		}}
	}
	return nil
}

// onLane names the lane in a refusal of a message that was made before a lane was
// looked at (spec §5.1).
func onLane(err error, lane string) error {
	if e, ok := errors.AsType[*engine.InvalidMessage](err); ok && e.Lane == "" {
		e.Lane = lane
	}
	return err
}

// busyHint says how a lane that is busy, which a hint names as at, becomes free; any other error is returned
// as it is.
func busyHint(err error, at string) error {
	f := explain(err)
	if f == nil || f.tag != "lane_busy" {
		return err
	}
	f.cause = err
	return f.withHint("drive the open operation to its end with `drover drive %s`, or wait for it with `drover wait %s`", at, at)
}

// refusalDetails gives the fields that §5.1 lists for a tag.
func refusalDetails(t tagged) func(*object) {
	switch e := t.(type) {
	case *engine.LaneBusy:
		return func(o *object) {
			o.str("lane", e.Lane)
			o.str("operationId", e.OperationID)
			o.str("operationKind", string(e.Kind))
		}
	case *engine.OperationMismatch:
		return func(o *object) {
			o.str("lane", e.Lane)
			o.str("expectedOperationId", e.Expected)
			o.optStr("currentOperationId", e.Current)
			o.optStr("lastOperationId", e.Last)
		}
	case *engine.MissingIdentities:
		return func(o *object) {
			o.str("lane", e.Lane)
			o.strs("tools", e.Missing.Tools)
			o.optStr("model", e.Missing.Model)
		}
	case *engine.InvalidMessage:
		return laneReason(e.Lane, e.Reason)
	case *engine.InvalidNavigation:
		return laneReason(e.Lane, e.Reason)
	case *engine.NothingToResume:
		return func(o *object) { o.str("lane", e.Lane) }
	case *engine.NothingToCompact:
		return func(o *object) { o.str("lane", e.Lane) }
	case *engine.NoActiveRun:
		return func(o *object) { o.str("lane", e.Lane) }
	case *engine.NoActiveOperation:
		return func(o *object) { o.str("lane", e.Lane) }
	case *engine.HookFailed:
		return hookFailed("", e)
	case *engine.LaneNotFound:
		return func(o *object) {
			o.str("lane", e.Lane)
			o.strs("lanes", e.Known)
		}
	}
	return nil
}

func laneReason(lane, reason string) func(*object) {
	return func(o *object) {
		o.str("lane", lane)
		o.str("reason", reason)
	}
}

// refusalHint says what can be done instead, "" where nothing is sure.
func refusalHint(t tagged) string {
	switch e := t.(type) {
	case *engine.MissingIdentities:
		return missingHint(e)
	case *engine.NoActiveRun:
		return "leave it for the next run with `drover next-run`, or start one with `drover prompt`"
	case *engine.NothingToCompact:
		return "the newest compaction.keep_recent_tokens stay as they are, so a short conversation leaves nothing to summarize; see `drover help config`"
	}
	return ""
}

// snake turns a tag of the specification into the spelling of scripts: LaneBusy
// becomes lane_busy.
func snake(tag string) string {
	var b strings.Builder
	for i, r := range tag {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
