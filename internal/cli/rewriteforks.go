package cli

import (
	"context"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
)

// relative is a session that shares content with the rewritten one.
type relative struct {
	ref      store.Ref
	relation string // fork, child or source
	of       string // the session that it is a fork or child of, "" for a source
	err      error  // why it could not be read
}

// related looks at the sessions that have copies of what went: forks, children and
// what was made from those, and the session that this one is a fork of. With
// --include-forks all but the last are rewritten in the same way; what still holds
// a text then, or could not be read, is reported.
func (o *rewriteOptions) related(ctx context.Context, r *rewriteResult) error {
	proof := o.proof(r.plan)
	if r.err != nil || proof.Empty() {
		return nil
	}
	all, err := o.relatives(ctx, r.ref)
	if err != nil {
		return err
	}
	selection := o.selection
	selection.Lenient = true
	for i := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.forks && all[i].relation != "source" && all[i].err == nil {
			item := o.rewriteOne(ctx, all[i].ref, &selection)
			r.forks = append(r.forks, item)
			if o.dryRun || item.err == nil {
				continue
			}
		}
		holds := all[i].err != nil
		if !holds {
			holds, all[i].err = o.holds(ctx, all[i].ref, proof)
		}
		if holds || all[i].err != nil {
			r.held = append(r.held, all[i])
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !o.dryRun {
		if r.again, err = o.commandsFor(ctx, r.held); err != nil {
			return err
		}
	}
	r.end = r.failure()
	return nil
}

// holds reports whether a session says, or its files hold, what must have gone.
func (o *rewriteOptions) holds(ctx context.Context, ref store.Ref, proof *rewrite.Proof) (found bool, err error) {
	err = o.view(ctx, ref, func(q store.Reader) error {
		said, err := proof.Records(ctx, q)
		found = len(said) > 0
		return err
	})
	if err != nil || found {
		return found, err
	}
	files, err := footprintOf(ref.Path)
	if err != nil {
		return false, err
	}
	lies, err := proof.Files(ctx, files.all()...)
	return len(lies) > 0, err
}

// relatives finds a session's relatives by the headers of the repository.
func (o *rewriteOptions) relatives(ctx context.Context, ref store.Ref) ([]relative, error) {
	listed, err := o.repo.List(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{ref.ID: true}
	taken := make(map[string]bool) // by path: each file of a session may hold its own copy
	var found []relative
	for more := true; more; {
		more = false
		for _, l := range listed {
			relation, of := relationOf(l, known)
			if relation == "" || taken[l.Ref.Path] || l.Ref.ID == ref.ID {
				continue
			}
			known[l.Ref.ID], taken[l.Ref.Path], more = true, true, true
			found = append(found, relative{ref: l.Ref, relation: relation, of: of, err: l.Err})
		}
	}
	own, err := o.repo.Header(ctx, ref)
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		if l.Ref.ID == own.ParentSessionID && !known[l.Ref.ID] {
			found = append(found, relative{ref: l.Ref, relation: "source", err: l.Err})
		}
	}
	return found, nil
}

// relationOf is how a session is related to one of those that are known, and to which.
func relationOf(l store.Listed, known map[string]bool) (relation, of string) {
	if parent := l.Header.ParentSessionID; known[parent] {
		return "fork", parent
	}
	if parent, ok := rawjson.GetString(l.Header.Spawn, "parentSessionId"); ok && known[parent] {
		return "child", parent
	}
	return "", ""
}
