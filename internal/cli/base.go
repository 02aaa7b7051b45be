package cli

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/tool"
)

// base is what most commands need: where to print, the configuration, and the
// repository.
type base struct {
	out    *printer
	config *config
	repo   *store.Repo
	now    func() int64
	models func() effect.Models
	tools  func(cwd string) (*tool.Registry, error)
	// inPlace allows a legacy file to be converted where it lies (D58).
	inPlace bool

	command string // what this process is doing, of a command that drives
	sockets string // the folder of owner sockets, of a command that drives
}

// resolve finds the session that an argument means.
func (b *base) resolve(ctx context.Context, arg string) (store.Ref, error) {
	ref, err := b.repo.Resolve(ctx, arg)
	if errors.Is(err, store.ErrNotFound) {
		f := notFoundf("session_not_found", "no session matches %q", escapeLine(arg))
		f.cause = err
		f.details = func(o *object) { o.str("session", arg) }
		return ref, f.withHint("`drover list` shows the sessions")
	}
	return ref, err
}

// base resolves the dependencies of a command that works on sessions.
func (f *factory) base(command string) (base, error) {
	c, err := f.config()
	if err != nil {
		return base{}, err
	}
	out, err := f.out()
	if err != nil {
		return base{}, err
	}
	repo, err := f.repo(command)
	if err != nil {
		return base{}, err
	}
	return base{out: out, config: c, repo: repo, now: f.now, models: f.models, tools: f.tools, inPlace: f.flags.inPlace}, nil
}
