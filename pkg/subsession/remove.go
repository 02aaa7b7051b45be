package subsession

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/drover-run/drover/pkg/store"
)

// own takes the leases of a window and looks at what they guard again: grown is a
// child that was claimed since the plan was made.
func (d *deleting) own(ctx context.Context, now []*Node) (grown bool, err error) {
	for _, n := range now {
		if !n.Exists || d.blocked[n.ID] {
			continue
		}
		if n.Several != nil { // a child that has come since
			d.keep(n.ID, n.Several)
			continue
		}
		if err := d.claim(ctx, n); err != nil {
			return false, err
		}
		if d.blocked[n.ID] || !n.Exists || n.Damaged != nil {
			continue
		}
		err := d.read(ctx, n)
		if err == nil && len(n.Open) > 0 && !d.Force {
			err = &OpenOperation{Operations: n.Open}
		}
		if err != nil {
			if !d.begun() {
				return false, err
			}
			d.keep(n.ID, err)
			continue
		}
		grown = grown || d.hasNewChild(n)
	}
	return grown, nil
}

// hasNewChild looks for a local child that the plan does not account for.
func (d *deleting) hasNewChild(n *Node) bool {
	remote := make(map[string]bool)
	for _, r := range n.remote {
		remote[r.SubSessionID] = true
	}
	for _, r := range n.local {
		if !remote[r.SubSessionID] && !d.knows(r.SubSessionID) {
			return true
		}
	}
	return false
}

// claim takes one lease. What keeps a single session is recorded, what keeps the
// whole tree is returned.
func (d *deleting) claim(ctx context.Context, n *Node) error {
	if n.ID == d.root.ID && d.rooted != nil {
		return nil
	}
	claim, err := d.Repo.Claim(ctx, n.Ref)
	held, busy := errors.AsType[*store.Held](err)
	switch {
	case err == nil:
		d.claims[n.ID] = claim
		return nil
	case errors.Is(err, store.ErrNotFound):
		n.Exists = false
		return nil
	case busy && !d.begun() && !d.Partial:
		return &Leased{Held: []*store.Held{held}}
	case !busy && !d.begun() && (errors.Is(err, store.ErrOpen) || readOnly(err)):
		return err
	}
	d.keep(n.ID, err)
	return nil
}

// readOnly reports a repository in which nothing can be deleted.
func readOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

// remove deletes the sessions of a window, in their order.
func (d *deleting) remove(ctx context.Context, now []*Node) error {
	for _, n := range now {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if d.blocked[n.ID] {
			continue
		}
		// A removal that has begun is not cut short.
		do := d.bury
		if !n.Exists {
			do = d.clear
		}
		if err := do(context.WithoutCancel(ctx), n); err != nil {
			if !d.begun() && readOnly(err) {
				return err
			}
			d.keep(n.ID, err)
			continue
		}
		d.done[n.ID] = true
	}
	return nil
}

// bury removes one session that is owned.
func (d *deleting) bury(ctx context.Context, n *Node) error {
	if d.Export != nil && n.Damaged == nil {
		if err := d.export(ctx, n); err != nil {
			return fmt.Errorf("export the usage of session %s: %w", n.ID, err)
		}
		d.passed(Exported, n.ID)
	}
	if err := d.tombstones().Write(d.tombstone(n)); err != nil {
		return err
	}
	d.passed(Entombed, n.ID)
	claim := d.claims[n.ID]
	if claim == nil {
		claim = d.rooted
	}
	if err := claim.Remove(ctx); err != nil {
		return err
	}
	d.passed(Removed, n.ID)
	d.out.Deleted = append(d.out.Deleted, n.ID)
	d.out.Usage = d.out.Usage.Add(n.Usage)
	err := claim.Close()
	delete(d.claims, n.ID)
	if claim == d.rooted {
		d.rooted = nil
	}
	if err != nil { // the session is gone; its lock is for the next run to remove
		d.out.Warnings = append(d.out.Warnings, fmt.Sprintf("session %s: %v", n.ID, err))
	}
	d.passed(Released, n.ID)
	d.forget(ctx, n.ID)
	return nil
}

const exportPage = 10_000 // rows

func (d *deleting) export(ctx context.Context, n *Node) error {
	r, err := d.Repo.View(ctx, n.Ref)
	if err != nil {
		return err
	}
	q := store.UsageQuery{Limit: exportPage}
	for err == nil {
		var rows []store.UsageRow
		if rows, err = r.ScanUsage(ctx, q); err == nil {
			err = d.Export(ctx, n.ID, rows)
		}
		if len(rows) < exportPage {
			break
		}
		q.FromSeq = rows[len(rows)-1].Seq + 1
	}
	return errors.Join(err, r.Close())
}

func (d *deleting) tombstone(n *Node) Tombstone {
	t := Tombstone{
		ID: n.ID, DeletedAt: d.Now(), CascadeID: d.out.CascadeID, Root: d.root.ID,
		GenerationFloor: n.floor, StoreGeneration: n.header.Generation,
		UsageTotals: n.Usage, MessageCount: n.messages,
	}
	if s, ok := ParseSpawn(n.header.Spawn); ok {
		t.SpawnParent = &s.ParentSessionID
	}
	for _, r := range n.local {
		t.LocalChildren = append(t.LocalChildren, r.SubSessionID)
	}
	for _, r := range n.remote {
		t.RemoteChildren = append(t.RemoteChildren, r.SubSessionID)
	}
	return t
}

// clear removes what is left of a session that is gone.
func (d *deleting) clear(ctx context.Context, n *Node) error {
	if err := d.Repo.RemoveResidue(ctx, n.ID); err != nil {
		return err
	}
	d.out.AlreadyGone = append(d.out.AlreadyGone, n.ID)
	d.forget(ctx, n.ID)
	return nil
}

// forget takes a session out of the search index, which has no authority: the next
// synchronization would do it, too.
func (d *deleting) forget(ctx context.Context, id string) {
	if d.Forget != nil {
		if err := d.Forget(ctx, id); err != nil {
			d.out.SearchRemoved = false
			d.out.Warnings = append(d.out.Warnings, fmt.Sprintf("session %s is still in the search index: %v", id, err))
		}
	}
	d.passed(Forgotten, id)
}

// release gives the leases of the window up.
func (d *deleting) release() {
	for id, claim := range d.claims {
		if err := claim.Close(); err != nil {
			d.out.Warnings = append(d.out.Warnings, fmt.Sprintf("session %s: %v", id, err))
		}
		delete(d.claims, id)
	}
}

func (d *deleting) releaseAll() {
	d.release()
	if d.rooted != nil {
		if err := d.rooted.Close(); err != nil {
			d.out.Warnings = append(d.out.Warnings, fmt.Sprintf("session %s: %v", d.root.ID, err))
		}
		d.rooted = nil
	}
}
