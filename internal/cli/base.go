package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-run/drover/internal/resource"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/telemetry"
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
	spans  func() (telemetry.Context, error)
	skills func() []resource.Skill
	home   string
	// inPlace allows a legacy file to be converted where it lies (D58).
	inPlace bool
	standIn string // DROVER_SESSION

	command string // what this process is doing, of a command that drives
	sockets string // the folder of owner sockets, of a command that drives
}

// resolve finds the session that an argument means.
func (b *base) resolve(ctx context.Context, arg string) (store.Ref, error) {
	ref, err := b.repo.Resolve(ctx, arg)
	if errors.Is(err, store.ErrNotFound) {
		return ref, b.noSession(ctx, arg, err)
	}
	return ref, err
}

// noteMissingRepo tells when there is no repository: whoever expects sessions looks
// into the wrong folder.
func (b *base) noteMissingRepo() {
	if _, err := os.Stat(b.repo.Dir()); errors.Is(err, fs.ErrNotExist) {
		b.out.note("note: there is no folder %s; --repo or DROVER_REPO names another one", escapeLine(b.repo.Dir()))
	}
}

// naming is how a hint names a session: by its id where that leads to the same file,
// by its path otherwise.
func (b *base) naming(ref store.Ref) string {
	stem := strings.TrimSuffix(filepath.Base(ref.Path), filepath.Ext(ref.Path))
	if stem == ref.ID && filepath.Dir(ref.Path) == b.repo.Dir() {
		return escapeLine(ref.ID)
	}
	return escapeLine(ref.Path)
}

// namingLane is how a hint names a lane of a session.
func (b *base) namingLane(ref store.Ref, lane string) string {
	at := b.naming(ref)
	if lane != store.MainLane {
		at += " --lane " + escapeLine(lane)
	}
	return at
}

// noSession says why an argument may have found nothing.
func (b *base) noSession(ctx context.Context, arg string, err error) *failure {
	f := notFoundf("session_not_found", "no session matches %q", escapeLine(arg))
	f.cause = err
	f.details = func(o *object) { o.str("session", arg) }
	if store.TooShort(arg) {
		f.message += fmt.Sprintf(": a beginning or ending of an id has %d characters at least", store.MinShortID)
	}
	if b.knowsName(ctx, arg) {
		return f.withHint("`%s%s` means the session with that name", store.NamePrefix, escapeLine(arg))
	}
	if b.standIn != "" && b.standIn != arg {
		return f.withHint("%s", nameItToo)
	}
	return f.withHint("`drover list` shows the sessions; `drover help sessions` says how one is named")
}

// knowsName reports whether a session has a name, as far as the catalog tells: a hint
// is not worth reading all sessions.
func (b *base) knowsName(ctx context.Context, name string) bool {
	found, err := b.repo.ListFolder(ctx, store.ListUnread)
	return err == nil && slices.ContainsFunc(found.Sessions, func(l store.Listed) bool {
		return l.Summary != nil && l.Summary.Name == name
	})
}

// nameItToo is for who relies on DROVER_SESSION where it does not stand in.
const nameItToo = "name the session, too: DROVER_SESSION stands in only where no argument is given"

// base resolves the dependencies of a command that works on sessions.
func (f *factory) base(command string) (base, error) {
	f.opening()
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
	skills := sync.OnceValue(func() []resource.Skill {
		found, bad := resource.Skills(c.skills)
		report(out, bad)
		return found
	})
	return base{skills: skills, home: f.env("HOME"), out: out, config: c, repo: repo, now: f.now, models: f.models, tools: f.tools, spans: f.spans, inPlace: f.flags.inPlace, standIn: f.env("DROVER_SESSION")}, nil
}
