package cli

import (
	"context"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/model"
	"github.com/drover-run/drover/pkg/model/scripted"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// openRepo describes the configured repository; command names the work in the
// lease, so that who is refused learns what the owner is doing.
func (f *factory) openRepo(command string) (*store.Repo, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	return store.NewRepo(store.RepoOptions{
		Dir:     c.repo,
		Drivers: []store.Driver{sqlite.Driver{}, jsonl.Driver{}},
		Open: store.OpenOptions{
			Wait: c.leaseWait, LeaseTTL: c.leaseTTL, PowerSafe: c.powerSafe,
			Now: f.now, Owner: store.OwnerInfo{Command: command},
		},
		Now: f.now,
	})
}

func (f *factory) newModels() (effect.Models, error) {
	registry := model.NewRegistry()
	registry.Register(scripted.Name, scripted.New(scripted.Options{StateDir: f.env("DROVER_SCRIPT_STATE")}))
	return registry, nil
}

// withReader opens a session for reading: no lease is taken and nothing is
// written (D9).
func (b *base) withReader(ctx context.Context, arg string, use func(store.Ref, store.Reader) error) error {
	ref, err := b.resolve(ctx, arg)
	if err != nil {
		return err
	}
	r, err := b.repo.View(ctx, ref)
	if err != nil {
		return err
	}
	return firstOf(use(ref, r), r.Close())
}

// withSession takes ownership of a session.
func (b *base) withSession(ctx context.Context, arg string, use func(store.Ref, *store.Session) error) error {
	s, ref, err := b.openSession(ctx, arg)
	if err != nil {
		return err
	}
	return firstOf(use(ref, s), s.Close())
}

// seed is the configuration of a lane that has none yet.
func (c *config) seed() (store.LaneConfiguration, error) {
	ref, err := absoluteModel(c.model)
	return store.LaneConfiguration{Model: ref, ThinkingLevel: c.thinking, ActiveToolNames: c.tools}, err
}

// harnessOptions are what every harness of this process is made with.
func (c *config) harnessOptions(s *store.Session, models effect.Models, now func() int64) (engine.Options, error) {
	seed, err := c.seed()
	return engine.Options{
		Session: s, Models: models, Seed: seed,
		SystemPrompt: c.systemPrompt,
		Retry: engine.RetryPolicy{
			MaxRetries: c.maxRetries, BaseDelayMs: c.baseDelay.Milliseconds(), MaxDelayMs: c.maxDelay.Milliseconds(),
		},
		Compaction: c.compaction, SteeringMode: c.steering, FollowUpMode: c.followUp, ToolExecution: c.toolExecution,
		Now: now,
	}, err
}

// withHarness drives a session that is already owned. Closing the harness closes
// the session; a context that ends closes both at once, which is the controlled
// crash of a signal (spec §4.7).
func withHarness(ctx context.Context, o engine.Options, use func(*engine.Harness) error) error {
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

// absoluteModel makes the script file of a model reference mean the same from
// any working directory.
func absoluteModel(ref message.ModelRef) (message.ModelRef, error) {
	return scripted.Absolute(ref)
}

// openSession takes ownership of the session that an argument means.
func (b *base) openSession(ctx context.Context, arg string) (*store.Session, store.Ref, error) {
	ref, err := b.resolve(ctx, arg)
	if err != nil {
		return nil, ref, err
	}
	s, err := b.repo.Open(ctx, ref)
	return s, ref, err
}
