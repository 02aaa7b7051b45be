package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/migrate"
	"github.com/drover-run/drover/pkg/store"
)

type migrateOptions struct {
	base
	sessions []string
	all      bool
	status   bool
	dryRun   bool
	backend  string
	noBackup bool
}

func newMigrateCmd(f *factory, runF func(context.Context, *migrateOptions) error) *cobra.Command {
	if runF == nil {
		runF = runMigrate
	}
	o := &migrateOptions{}
	cmd := &cobra.Command{
		Use:   "migrate SESSION...",
		Short: "Bring sessions to the current storage version, or to another backend",
		Long: `Bring sessions to the current storage version, as every command that writes to one
does when it opens it. An operation that is open goes on afterwards from where it
stood. Commands that only read need no migration.

With --backend a session also moves to that backend: the same entries, values and
ledger, byte for byte and under the same numbers. The new file is checked before the
old one is given up, which is then kept as NAME.bak. Of a session behind a symbolic
link the file moves where it lies, and the link gets the new ending. Run again, it
finishes a move that was interrupted.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitNotFound, exitCorrupt, exitIO, exitVersion, exitRefused, exitLocked),
		ValidArgsFunction: completeSessions(f),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.sessions, err = severalArgs(f, args, o.all); err != nil {
				return err
			}
			if err = o.check(); err != nil {
				return err
			}
			if o.base, err = f.base("migrate"); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "every session of the repository")
	flags.BoolVar(&o.status, "status", false, "only tell which sessions would be migrated")
	flags.BoolVar(&o.dryRun, "dry-run", false, "migrate copies, tell what came of it, and change nothing")
	flags.StringVar(&o.backend, "backend", "", "move to this `BACKEND`: sqlite or jsonl")
	flags.BoolVar(&o.noBackup, "no-backup", false, "remove the old file of a session that has moved")
	return cmd
}

func (o *migrateOptions) check() error {
	switch {
	case o.backend != "" && o.backend != "sqlite" && o.backend != "jsonl":
		return usagef("--backend %q: want sqlite or jsonl", escapeLine(o.backend))
	case o.noBackup && o.backend == "":
		return usagef("--no-backup goes with --backend only")
	case o.status && o.dryRun:
		return usagef("--status and --dry-run exclude each other")
	}
	return nil
}

// migrationStatus is what became of one session.
type migrationStatus string

const (
	statusCurrent      migrationStatus = "current"
	statusMigrated     migrationStatus = "migrated"
	statusWouldMigrate migrationStatus = "would-migrate"
	statusFailed       migrationStatus = "failed"
)

// migrated is what was done to one session.
type migrated struct {
	target
	from   int64 // 0 when the session has no version that can be read, or was a legacy file
	steps  []string
	status migrationStatus
	moved  bool
}

func runMigrate(ctx context.Context, o *migrateOptions) error {
	targets, err := o.targets(ctx, o.sessions, o.all)
	if err != nil {
		return err
	}
	items, left, err := sweepItems(ctx, o.items(targets), func(m *migrated) error {
		if m.err == nil {
			m.err = o.migrateOne(ctx, m)
		}
		if m.err != nil {
			m.status = statusFailed
		}
		return m.err
	}, func(m *migrated) {
		// A failed write sticks to the stream and is reported at the end.
		_ = o.out.item(m.write)
	})
	if err != nil {
		return err
	}
	return o.report(ctx, items, left)
}

// items leaves out the second file of a session that moves: whatever is to be done
// about it belongs to the move.
func (o *migrateOptions) items(targets []target) []migrated {
	var items []migrated
	for _, t := range targets {
		if o.backend == "" || !errors.Is(t.err, store.ErrExists) {
			items = append(items, migrated{target: t})
		}
	}
	return items
}

func (o *migrateOptions) migrateOne(ctx context.Context, m *migrated) error {
	legacy := m.ref.Legacy
	if legacy && !o.status && !o.dryRun {
		if err := m.convert(ctx, &o.base); err != nil {
			return err
		}
	}
	err := o.migrateStored(ctx, m)
	for followed(&m.ref, err) {
		m.steps = nil
		err = o.migrateStored(ctx, m)
	}
	if err == nil && legacy {
		m.from, m.status = 0, statusMigrated
	}
	return err
}

func (o *migrateOptions) migrateStored(ctx context.Context, m *migrated) error {
	h, err := o.repo.Header(ctx, m.ref)
	if err != nil {
		return err
	}
	m.from = h.StorageVersion
	steps, err := migrate.Chain().After(m.ref.Path, m.from)
	if err != nil {
		return err
	}
	for _, step := range steps {
		m.steps = append(m.steps, step.Name)
	}
	m.moved = o.backend != "" && o.backend != m.ref.Backend
	m.status = statusMigrated
	if o.status || o.dryRun {
		m.status = statusWouldMigrate
	}
	if len(steps) == 0 && !m.moved {
		m.status = statusCurrent
		if o.backend == "" {
			return o.readable(ctx, m.ref)
		}
	}
	move := store.MoveOptions{Backend: o.backend, Discard: o.noBackup, Judge: sound}
	switch {
	case o.status:
		return nil
	case o.dryRun && m.status == statusCurrent:
		return nil
	case o.dryRun:
		return o.repo.Rehearse(ctx, m.ref, move)
	case o.backend != "" && len(steps) == 0 || m.moved:
		return m.move(ctx, o.repo, move)
	}
	s, err := o.repo.Open(ctx, m.ref)
	if err != nil {
		return err
	}
	return s.Close()
}

// readable wants a session that opens: that its header is current says nothing about
// the rest. --status looks at headers alone.
func (o *migrateOptions) readable(ctx context.Context, ref store.Ref) error {
	if o.status {
		return nil
	}
	return o.view(ctx, ref, func(store.Reader) error { return nil })
}

func (m *migrated) move(ctx context.Context, repo *store.Repo, o store.MoveOptions) error {
	ref, err := repo.Move(ctx, m.ref, o)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return unsupportedf("%v", err)
	case err == nil:
		m.ref = ref
	}
	return err
}

// sound wants a session that verify has nothing against.
func sound(ctx context.Context, r store.Reader) error {
	for p := range store.Verify(ctx, r, engine.Check) {
		if p.Severity == store.SeverityError {
			return &store.Corrupt{Offset: -1, Msg: fmt.Sprintf("%s (%s)", p.Message, p.Where)}
		}
	}
	return ctx.Err()
}

func (m *migrated) write(o *object) {
	o.str("session", m.session)
	if m.from == 0 {
		o.null("from")
	} else {
		o.int("from", m.from)
	}
	o.int("to", store.StorageVersion)
	o.strs("steps", m.steps)
	o.optStr("backend", m.ref.Backend)
	o.str("status", string(m.status))
	o.itemError(m.err)
}

func (o *migrateOptions) report(ctx context.Context, items []migrated, left int) error {
	var errs []error
	counts := make(map[migrationStatus]int64)
	for _, m := range items {
		errs = append(errs, m.err)
		counts[m.status]++
	}
	return o.out.result(sweepFailure(ctx, errs, left, len(items)+left), func(d *object) {
		d.array("items", len(items), func(i int, d *object) { items[i].write(d) })
		d.object("totals", func(d *object) {
			d.int("sessions", int64(len(items)))
			d.int("current", counts[statusCurrent])
			d.int("migrated", counts[statusMigrated])
			d.int("wouldMigrate", counts[statusWouldMigrate])
			d.int("failed", counts[statusFailed])
			d.notDone(left)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		for _, m := range items {
			p.line("%s  %s", escapeLine(m.session), m.describe(o.backend))
		}
		return p.err
	})
}

func (m *migrated) describe(backend string) string {
	if m.err != nil {
		return escapeLine(explain(m.err).message)
	}
	text := fmt.Sprintf("current, storage version %d", m.from)
	if m.from == 0 {
		text = fmt.Sprintf("%s from a legacy file to storage version %d", m.status, store.StorageVersion)
	} else if len(m.steps) > 0 {
		text = fmt.Sprintf("%s from storage version %d to %d", m.status, m.from, store.StorageVersion)
	} else if m.moved {
		text = fmt.Sprintf("%s, storage version %d", m.status, m.from)
	}
	if m.moved {
		text += ", to " + backend
	}
	return text
}
