package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/engine/op"
	"github.com/drover-run/drover/pkg/store"
)

// ready resolves a configuration and starts those of its tools that have to be
// started before a request can offer them (D47). Like what does not resolve, what
// does not start is a *MissingIdentities.
func (l *Lane) ready(ctx context.Context, cfg store.LaneConfiguration) (effect.Model, error) {
	model, err := l.resolve(cfg)
	if err != nil {
		return nil, err
	}
	return model, l.startTools(ctx, cfg.ActiveToolNames)
}

// startTools starts tools side by side; what does not start is refused by name.
func (l *Lane) startTools(ctx context.Context, names []string) error {
	failures := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		tool, _ := l.h.opts.Tools.Lookup(name)
		if starter, ok := tool.(effect.Starter); ok {
			all.Go(func() {
				if failures[i] = starter.Start(ctx); failures[i] == nil {
					l.h.started.Store(name, true)
				}
			})
		}
	}
	all.Wait()
	refusal := &MissingIdentities{Lane: l.name, Missing: op.Missing{Tools: []string{}}}
	var told []error
	for i, err := range failures {
		if err == nil {
			continue
		}
		refusal.Missing.Tools = append(refusal.Missing.Tools, names[i])
		if len(told) == 0 || told[len(told)-1].Error() != err.Error() { // tools of one server fail alike
			told = append(told, err)
		}
	}
	if len(told) == 0 {
		return nil
	}
	refusal.Err = errors.Join(told...)
	return refusal
}

// startBeforeAcceptance starts what a run would need while a refusal still costs
// nothing. It runs off the lane line, on which nobody may wait for the world; what
// the lane is set to meanwhile is started by the run itself.
func (l *Lane) startBeforeAcceptance(ctx context.Context, c Configure) error {
	names := c.ActiveToolNames
	if names == nil {
		cfg, err := l.Configuration(ctx)
		if err != nil {
			return err
		}
		names = &cfg.ActiveToolNames
	}
	return l.startTools(ctx, *names)
}
