package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/store"
)

// outcomeFailure says how a process ends that drove an operation to the given
// end: nil when it completed.
func outcomeFailure(p pursuit, d engine.DriveOutcome) error {
	f := &failure{details: func(o *object) {
		o.str("session", p.session)
		o.str("lane", p.lane)
		o.str("operationId", d.OperationID)
		if d.Reason != "" {
			o.str("reason", string(d.Reason))
			o.optInt("notBefore", d.NotBefore)
		}
		if d.Outcome != nil && d.Outcome.Error != nil {
			o.object("error", func(o *object) {
				o.str("code", d.Outcome.Error.Code)
				o.str("message", d.Outcome.Error.Message)
			})
		}
	}}
	switch d.Kind {
	case engine.Settled:
		if !settledFailure(f, *d.Outcome) {
			return nil
		}
	case engine.Waiting:
		f.code, f.tag, f.message = exitLater, "waiting", waitMessage(d)
		f.hint = waitHint(p, d)
		if f.stuck = stuck(d); f.stuck {
			f.place = p.place()
		}
	case engine.Yielded:
		f.code, f.tag, f.message = exitLater, "yielded", "the deadline came first; the operation stays open"
		f.hint = fmt.Sprintf("go on with `drover drive %s`", p.at)
	}
	return f
}

// ended turns the end of a drive pass into the command's. A pass that the
// deadline cut off in the middle of a request has yielded: what it had streamed
// is kept, and the operation stays open.
func ended(ctx context.Context, p pursuit, d engine.DriveOutcome, err error) (engine.DriveOutcome, error) {
	if err != nil && context.Cause(ctx) == errDeadline {
		d, err = engine.DriveOutcome{Kind: engine.Yielded, OperationID: p.operation}, nil
	}
	if err == nil {
		return d, outcomeFailure(p, d)
	}
	err = bySignal(ctx, err)
	f := explain(err)
	_, panicked := errors.AsType[*store.Panicked](err)
	if hook, ok := errors.AsType[*engine.HookFailed](err); ok {
		f.details = hookFailed(p.session, hook)
	} else if !panicked && f.tag != "interrupted" {
		return d, err
	}
	return d, f.withHint("go on with `drover drive %s`", p.at)
}

// settledFailure fills in how an operation failed, false when it did not.
func settledFailure(f *failure, o engine.Outcome) bool {
	f.tag = string(o.Kind)
	f.message = fmt.Sprintf("the %s was %s", o.Operation, o.Kind)
	switch o.Kind {
	case op.Completed:
		return false
	case op.Failed:
		f.code, f.message = exitFailed, fmt.Sprintf("the %s failed", o.Operation)
		if o.Error != nil {
			f.message += ": " + o.Error.Message
			f.hint = failedHint(o)
		}
	default:
		f.code = exitAborted
	}
	return true
}

// failedHint says what can be done about an operation that failed, "" for nothing.
func failedHint(o engine.Outcome) string {
	if script := scripted.UsedUp(o.Error.Message); script != "" {
		return fmt.Sprintf("each request takes a response, whichever session asks; remove %s.state to play the script from the start (`drover help scripts`)", script)
	}
	if o.FinalMessage == nil {
		return ""
	}
	switch refused := message.ProviderError(o.FinalMessage); {
	case refused.Status == http.StatusNotFound && strings.Contains(strings.ToLower(o.Error.Message), "batch"):
		return "" // a job that is gone: the model has answered before
	case refused.Status == http.StatusNotFound, strings.Contains(o.Error.Message, "model_not_found"):
		return fmt.Sprintf("is the model's name right, and the base_url of its provider? `drover model show %s` says what is known of it", answeredBy(o.FinalMessage))
	case refused.Class == message.ClassAuth:
		return keyHint
	case refused.Class == message.ClassNetwork && refused.Status == 0:
		return "is the server up, and the base_url of its provider right? `drover help providers`"
	}
	return ""
}

// stuck tells a wait that time alone does not end: for what is not there, or for the
// answer of a job that nobody is told about, for a reason that stays.
func stuck(d engine.DriveOutcome) bool {
	return d.Reason == engine.WaitMissing || d.PollFailed.Known && !d.PollFailed.Passes()
}

func waitHint(p pursuit, d engine.DriveOutcome) string {
	switch {
	case d.Reason == engine.WaitMissing && d.Why != nil:
		return fmt.Sprintf("%s; then go on with `drover drive %s`", missingHint(d.Why), p.at)
	case d.Reason == engine.WaitMissing:
		return fmt.Sprintf("`drover doctor` looks at the configuration; then go on with `drover drive %s`", p.at)
	case d.Unsure:
		return fmt.Sprintf("go on with `drover drive %s`; until then nothing is submitted again", p.at)
	case d.Reason != engine.WaitDeferred:
		return fmt.Sprintf("go on with `drover drive %s --wait-retry`", p.at)
	case d.PollFailed.Class == message.ClassAuth:
		return fmt.Sprintf("%s; then ask again with `drover drive %s --poll-deferred`", keyHint, p.at)
	case d.PollFailed.Status == http.StatusNotFound:
		return fmt.Sprintf("is the base_url of its provider right? `drover help providers`; then ask again with `drover drive %s --poll-deferred`", p.at)
	}
	return fmt.Sprintf("ask for the answer with `drover drive %s --poll-deferred`", p.at)
}

// keyHint is for a key that is refused or cannot be read.
const keyHint = "`drover help providers` says where the key is taken from"

func waitMessage(d engine.DriveOutcome) string {
	switch {
	case d.Why != nil:
		return "the operation waits: " + d.Why.Error()
	case d.Unsure:
		return "the provider may have the request already: that shows once the jobs that may be it have ended; they are looked at again, not before " + instant(*d.NotBefore)
	case d.Reason == engine.WaitDeferred && d.NotBefore != nil:
		later := "the provider answers later, not before " + instant(*d.NotBefore)
		if d.PollFailed.Known {
			later += "; the last poll failed: " + escapeLine(d.PollFailed.Reason())
		}
		return later
	case d.NotBefore != nil:
		return "the operation waits for its next attempt, not before " + instant(*d.NotBefore)
	}
	return fmt.Sprintf("the operation waits: %s", d.Reason)
}

// writeNotBefore is the field that every answer with exit 75 has.
func writeNotBefore(o *object, d engine.DriveOutcome) {
	if d.Kind == engine.Waiting || d.Kind == engine.Yielded {
		o.optInt("notBefore", d.NotBefore)
	}
}

// runOutcome writes the RunOutcome of §5.1: what settled, or why the run is
// suspended.
func runOutcome(o *object, d engine.DriveOutcome, leaf *store.LeafID) {
	switch d.Kind {
	case engine.Settled:
		o.value("outcome", *d.Outcome)
		return
	case engine.Waiting, engine.Yielded:
	default: // cut short: nothing is known
		o.null("outcome")
		return
	}
	o.object("outcome", func(o *object) {
		o.str("kind", "suspended")
		reason := string(d.Reason)
		if reason == "" {
			reason = string(d.Kind)
		}
		o.str("reason", reason)
		if leaf != nil {
			o.value("leafId", *leaf)
		}
		if d.NotBefore != nil {
			o.int("notBefore", *d.NotBefore)
		}
		if d.Deferred != nil {
			if leaf != nil && *leaf != "" && !d.Unsure {
				o.str("finalEntryId", string(*leaf)) // the answer that holds the handle
			}
			o.raw("deferred", d.Deferred)
		}
		if d.Missing != nil {
			o.object("missing", func(o *object) {
				o.strs("tools", d.Missing.Tools)
				if d.Missing.Model != "" {
					o.str("model", d.Missing.Model)
				}
			})
		}
	})
}
