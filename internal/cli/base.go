package cli

import (
	"github.com/drover-run/drover/pkg/store"
)

// base is what most commands need: where to print, the configuration, and the
// repository.
type base struct {
	out    *printer
	config *config
	repo   *store.Repo
	now    func() int64
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
	return base{out: out, config: c, repo: repo, now: f.now}, nil
}
