package cli

import (
	"context"
	"errors"
	"io"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/migrate"
	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
	"github.com/drover-run/drover/pkg/subsession"
)

// drivers are the encodings that sessions may have, the default first.
func drivers() []store.Driver { return []store.Driver{sqlite.Driver{}, jsonl.Driver{}} }

// withScratch makes the encodings ready to write many small sessions. The caller
// closes the scratch when all is written.
func (f *factory) withScratch() *sqlite.Scratch {
	scratch := &sqlite.Scratch{}
	for i, d := range f.drivers {
		if d, ok := d.(sqlite.Driver); ok {
			d.Scratch = scratch
			f.drivers[i] = d
		}
	}
	return scratch
}

// repoFor describes the configured repository; command names the work in the
// lease, so that who is refused learns what the owner is doing. socket names the
// owner socket of an open session, nil for none.
func (f *factory) repoFor(command string, socket func(path string, fence int64) string) (*store.Repo, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	return store.NewRepo(store.RepoOptions{
		Dir:     c.repo,
		Drivers: f.drivers,
		Open: store.OpenOptions{
			Wait: c.leaseWait, LeaseTTL: c.leaseTTL, PowerSafe: c.powerSafe,
			Now: f.now, Owner: store.OwnerInfo{Command: command}, Socket: socket,
		},
		Now:        f.now,
		Migrations: migrate.Chain(),
		Past:       subsession.Tombstones{Dir: c.repo}.Past,
	})
}

// seed is the configuration of a lane that has none yet.
func (c *config) seed() (store.LaneConfiguration, error) {
	ref, err := absoluteModel(c.model)
	return store.LaneConfiguration{Model: ref, ThinkingLevel: c.thinking, ActiveToolNames: c.tools}, err
}

// absoluteModel makes the script file of a model reference mean the same from
// any working directory.
func absoluteModel(ref message.ModelRef) (message.ModelRef, error) { return scripted.Absolute(ref) }

// harnessOptions are what every harness of this process is made with.
func (b *base) harnessOptions(ctx context.Context, s *store.Session) (engine.Options, error) {
	cwd, err := store.WorkingFolder(ctx, s)
	if err != nil {
		return engine.Options{}, err
	}
	return b.harnessOptionsIn(cwd, s)
}

// harnessOptionsIn has the tools work in another folder than the session's.
func (b *base) harnessOptionsIn(cwd string, s *store.Session) (engine.Options, error) {
	c := b.config
	tools, err := b.tools(cwd)
	if err != nil {
		return engine.Options{}, err
	}
	spans, err := b.spans()
	if err != nil {
		return engine.Options{}, err
	}
	seed, err := c.seed()
	return engine.Options{
		Telemetry: spans,
		Session:   s, Models: b.models(), Tools: tools, Seed: seed,
		SystemPrompt: b.systemPrompt(cwd).text, Hooks: b.hooks(cwd, s.Header().ID),
		Retry: engine.RetryPolicy{
			MaxRetries: c.maxRetries, BaseDelayMs: c.baseDelay.Milliseconds(), MaxDelayMs: c.maxDelay.Milliseconds(),
		},
		Compaction: c.compaction, SteeringMode: c.steering, FollowUpMode: c.followUp, ToolExecution: c.toolExecution,
		Now: b.now,
	}, err
}

// withReader opens a session for reading: no lease is taken and nothing is
// written (D9).
func (b *base) withReader(ctx context.Context, arg string, use func(store.Ref, store.Reader) error) error {
	ref, r, err := b.resolveView(ctx, arg)
	if err != nil {
		return err
	}
	return firstOf(use(ref, r), r.Close())
}

// resolveView finds the session that an argument means, and opens it for reading. The
// ref is the zero one when there is none.
func (b *base) resolveView(ctx context.Context, arg string) (store.Ref, store.Reader, error) {
	ref, r, err := b.repo.ResolveView(ctx, arg)
	if errors.Is(err, store.ErrNotFound) && ref == (store.Ref{}) {
		err = b.noSession(ctx, arg, err)
	}
	return ref, r, err
}

func (b *base) view(ctx context.Context, ref store.Ref, use func(store.Reader) error) error {
	r, err := b.repo.View(ctx, ref)
	if err != nil {
		return err
	}
	return firstOf(use(r), r.Close())
}

// lease tells who owns a session, nil when nobody does.
func (b *base) lease(ctx context.Context, ref store.Ref) (*store.Lease, error) {
	if ref.Legacy {
		return nil, nil
	}
	return b.repo.Lease(ctx, ref)
}

// leaseIn tells who owns a session that r is a view of: in the moment of the view,
// where it can tell, so that the answer fits the rest and takes no second opening.
func (b *base) leaseIn(ctx context.Context, r store.Reader, ref store.Ref) (*store.Lease, error) {
	if l, ok := r.(store.LeaseReader); ok {
		return l.Lease(ctx)
	}
	return b.lease(ctx, ref)
}

// target is the session that an argument means to a command that writes. A
// legacy file is converted first where that is allowed (D58).
func (b *base) target(ctx context.Context, arg string) (store.Ref, error) {
	ref, err := b.resolve(ctx, arg)
	if err != nil {
		return ref, err
	}
	return b.converted(ctx, ref)
}

// converted is a session as it can be written to: a legacy file is converted where
// that is allowed, anything else stays as it is.
func (b *base) converted(ctx context.Context, ref store.Ref) (store.Ref, error) {
	if !ref.Legacy || !b.inPlace {
		return ref, nil
	}
	open := store.OpenOptions{Wait: b.config.leaseWait, Now: b.now}
	if err := (jsonl.Driver{}).Convert(ctx, ref.Path, open); err != nil {
		return ref, err
	}
	b.out.note("converted %s; the old file is kept as %s.v3.bak", escapeLine(ref.Path), escapeLine(ref.Path))
	return b.resolve(ctx, ref.Path)
}

// openSession takes ownership of the session that an argument means.
func (b *base) openSession(ctx context.Context, arg string) (*store.Session, store.Ref, error) {
	ref, err := b.target(ctx, arg)
	if err != nil {
		return nil, ref, err
	}
	s, err := b.open(ctx, &ref)
	return s, ref, err
}

// open takes ownership of a session. One that moves while it is waited for is followed,
// and ref with it.
func (b *base) open(ctx context.Context, ref *store.Ref) (*store.Session, error) {
	for {
		s, err := b.repo.Open(ctx, *ref)
		if !followed(ref, err) {
			return s, err
		}
	}
}

// followed makes ref that of a session that has moved; false when err tells no such
// thing.
func followed(ref *store.Ref, err error) bool {
	moved, ok := errors.AsType[*store.Moved](err)
	if ok {
		*ref = moved.To
	}
	return ok
}

// withHarness drives a session that this process owns, and closes it. A context
// that ends closes it at once, in the middle of whatever runs: that is the
// controlled crash of a signal (spec §4.7).
func (b *base) withHarness(ctx context.Context, s *store.Session, use func(*engine.Harness) error) error {
	options, err := b.harnessOptions(ctx, s)
	if err != nil {
		return firstOf(err, s.Close())
	}
	return withOptions(ctx, options, use)
}

func withOptions(ctx context.Context, o engine.Options, use func(*engine.Harness) error) (err error) {
	if tools, ok := o.Tools.(io.Closer); ok {
		defer func() { err = firstOf(err, tools.Close()) }()
	}
	h, err := engine.New(ctx, o)
	if err != nil {
		return firstOf(err, o.Session.Close())
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = h.Close() // the close below returns what it failed with
	})
	err = use(h)
	if !stop() {
		<-closed
	}
	return firstOf(err, h.Close())
}

// firstOf returns the reason, and what closing said only when there is none.
func firstOf(err, closing error) error {
	if err != nil {
		return err
	}
	return closing
}
