package cli

import (
	"fmt"

	"github.com/drover-run/drover/pkg/subsession"
)

func incomplete(failed []subsession.Failed) *failure {
	first := explain(failed[0].Err)
	f := &failure{code: exitPartial, tag: "delete_incomplete", cause: failed[0].Err, details: func(o *object) { writeFailed(o, failed) }}
	f.message = fmt.Sprintf("%d session(s) were not deleted, the first: %s: %s", len(failed), failed[0].ID, first.message)
	return f.withHint("the same command deletes the rest once that is mended")
}

// outcome is what the command ends with. Of several sessions, and of a tree of several,
// each that stays is named with its reason.
func (o *deleteOptions) outcome(items []deletion, errs []error) error {
	err := itemsFailure("sessions", errs)
	failed := stayed(items)
	if len(errs) > 1 || len(failed) > 1 {
		for _, f := range failed {
			o.out.alert("failed %s: %s", escapeLine(f.ID), escapeLine(explain(f.Err).message))
		}
	}
	if err == nil || len(errs) == 1 {
		return err
	}
	f := explain(err)
	if f.code == exitPartial {
		f.tag = "delete_incomplete"
	}
	f.details = func(o *object) { writeFailed(o, failed) }
	return f
}

// stayed are the sessions that could not be deleted.
func stayed(items []deletion) []subsession.Failed {
	var all []subsession.Failed
	for _, item := range items {
		switch {
		case item.done != nil && len(item.done.Failed) > 0:
			all = append(all, item.done.Failed...)
		case item.err != nil:
			all = append(all, subsession.Failed{ID: item.session, Err: item.err})
		}
	}
	return all
}

func writeFailed(o *object, failed []subsession.Failed) {
	o.array("failed", len(failed), func(i int, o *object) {
		f := explain(failed[i].Err)
		o.str("id", failed[i].ID)
		o.str("code", f.tag)
		o.str("message", f.message)
	})
}
