package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

type doctorOptions struct {
	f   *factory
	out *printer
}

func newDoctorCmd(f *factory, runF func(context.Context, *doctorOptions) error) *cobra.Command {
	if runF == nil {
		runF = runDoctor
	}
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check what drover needs to work here",
		Long: `Check the environment: the configuration, the repository and its sessions, the
disk, the storage, the folder of owner sockets, the terminal, the model and the
tools that new sessions get, and which providers of models can be used: their keys
are looked for, nothing is asked over the network. So are the configured programs,
and those that are MCP servers: none is started. So are the files and folders that
the configuration names: skills, templates, the system prompt, context files of the
working directory, telemetry.
Each line says ok, warn or fail. Warnings are no failure; after a failed check the
exit code is that of the first one.

Sessions are looked at from outside: their headers, who owns them, and what lies
about in the repository. "drover verify --all" checks what is in them.` +
			exitHelp(exitOK, exitUsage, exitPartial, exitCorrupt, exitIO, exitVersion, exitRefused),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := f.plainOut() // a broken configuration is a finding
			if err != nil {
				return err
			}
			return runF(cmd.Context(), &doctorOptions{f: f, out: out})
		},
	}
}

// checkStatus is what a check found.
type checkStatus string

const (
	checkOK      checkStatus = "ok"
	checkWarning checkStatus = "warning"
	checkError   checkStatus = "error"
)

// finding is one line of the doctor.
type finding struct {
	name    string
	status  checkStatus
	message string
	err     error // of an error
}

func good(name, format string, args ...any) finding {
	return finding{name, checkOK, fmt.Sprintf(format, args...), nil}
}

func doubtful(name, format string, args ...any) finding {
	return finding{name, checkWarning, fmt.Sprintf(format, args...), nil}
}

func bad(name string, err error) finding {
	return finding{name, checkError, explain(err).message, err}
}

func runDoctor(ctx context.Context, o *doctorOptions) error {
	all := o.examine(ctx)
	if err := ctx.Err(); err != nil {
		return bySignal(ctx, err)
	}
	var failed error
	for _, f := range all {
		if f.status == checkError && failed == nil {
			first := *explain(f.err)
			first.message = "check " + f.name + " failed: " + f.message
			failed = &first
		}
	}
	return o.out.result(failed, func(d *object) {
		d.array("checks", len(all), func(i int, d *object) {
			d.str("name", all[i].name)
			d.str("status", string(all[i].status))
			d.str("message", all[i].message)
		})
	}, func(w io.Writer) error {
		p := &lines{w: w}
		words := map[checkStatus]string{checkOK: "ok", checkWarning: "warn", checkError: "fail"}
		for _, f := range all {
			p.line("%-4s  %-13s  %s", words[f.status], f.name, escapeLine(f.message))
		}
		return p.err
	})
}

// examine makes all checks; those that need the configuration are left out when it
// cannot be read.
func (o *doctorOptions) examine(ctx context.Context) []finding {
	all := []finding{o.configuration(), o.storage(), o.sockets(), o.cache(), o.terminal()}
	c, err := o.f.config()
	if err != nil {
		return all
	}
	all = append(all, repositoryFolder(c.repo), diskSpace(c.repo), o.model(c))
	all = append(all, o.providers()...)
	all = append(append(append(all, o.programs(c)...), o.servers(c)...), o.toolbox(c))
	all = append(append(all, o.hooks(c)...), o.files(c)...)
	repo, err := o.f.repo("doctor")
	if err != nil {
		return append(all, bad("sessions", err))
	}
	return append(all, sessionsOf(ctx, repo)...)
}

func (o *doctorOptions) configuration() finding {
	path := configPath(o.f.flags.config, o.f.env)
	if _, err := o.f.config(); err != nil {
		return bad("configuration", err)
	}
	if len(o.f.strange) > 0 {
		return doubtful("configuration", "variables that do nothing: %s", strings.Join(o.f.strange, ", "))
	}
	if path == "" {
		return good("configuration", "no file, which is fine")
	}
	fi, err := os.Stat(path)
	if err != nil {
		return good("configuration", "%s", path)
	}
	return good("configuration", "%s, mode %04o", path, fi.Mode().Perm())
}

func (o *doctorOptions) storage() finding {
	return good("storage", "sqlite (SQLite %s), jsonl; format %d, storage version %d; %s/%s",
		sqlite.SQLiteVersion(), store.Format, store.StorageVersion, runtime.GOOS, runtime.GOARCH)
}

func (o *doctorOptions) sockets() finding {
	path, err := owner.Folder(o.f.env)
	if err != nil {
		return bad("sockets", err)
	}
	return good("sockets", "%s", path)
}

// cache is where what can be made again is kept.
func (o *doctorOptions) cache() finding {
	dir, err := cacheFolder(o.f.env)
	if err != nil {
		return doubtful("cache", "%v", err)
	}
	if err := writableAbove(dir); err != nil {
		return doubtful("cache", "%v", err)
	}
	return good("cache", "%s", dir)
}

func (o *doctorOptions) terminal() finding {
	if !o.f.io.outTTY {
		return good("terminal", "stdout is none: plain output")
	}
	return good("terminal", "%d columns", o.out.width)
}

// repositoryFolder looks at the folder of the sessions, which the first one makes.
func repositoryFolder(dir string) finding {
	const name = "repository"
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := writableAbove(dir); err != nil {
			return bad(name, err)
		}
		return good(name, "%s is not there yet; the first session makes it", dir)
	case err != nil:
		return bad(name, err)
	case !fi.IsDir():
		return bad(name, &fs.PathError{Op: "open", Path: dir, Err: errors.New("no folder")})
	}
	if err := tryToWrite(dir); err != nil {
		return bad(name, err)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return doubtful(name, "%s: others may look into it (mode %04o; 0700 is private)", dir, fi.Mode().Perm())
	}
	return good(name, "%s, mode %04o", dir, fi.Mode().Perm())
}

// writableAbove looks at the folder, or at the one in which it will be made.
func writableAbove(dir string) error {
	dir = existingAbove(dir)
	if fi, err := os.Stat(dir); err != nil {
		return err
	} else if !fi.IsDir() {
		return &fs.PathError{Op: "open", Path: dir, Err: errors.New("no folder")}
	}
	return tryToWrite(dir)
}

func existingAbove(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// littleSpace is how much free disk is called little: the largest payload, twice.
const littleSpace = 2 * store.MaxPayload

func diskSpace(dir string) finding {
	free, err := freeSpace(existingAbove(dir))
	switch {
	case err != nil:
		return doubtful("disk", "the free space is not known: %v", err)
	case free < littleSpace:
		return doubtful("disk", "only %d MiB are free", free>>20)
	}
	return good("disk", "%d MiB are free", free>>20)
}

func (o *doctorOptions) model(c *config) finding {
	seed, err := c.seed()
	if err == nil {
		_, err = o.f.models().Resolve(seed.Model)
	}
	if _, unknown := errors.AsType[*effect.UnknownModel](err); unknown {
		return bad("model", &failure{code: exitRefused, tag: "missing_identities", message: err.Error()})
	}
	if err != nil {
		return bad("model", err)
	}
	return good("model", "%s", seed.Model)
}

// providers says which models can be used now, and why others cannot. Nobody has
// asked for the vendors that need no configuration, so that one without a key is
// no reason to worry.
func (o *doctorOptions) providers() []finding {
	endpoints, err := o.f.endpoints()
	if err != nil {
		return []finding{bad("providers", err)}
	}
	var all []finding
	for _, e := range endpoints {
		models := "none of its models is described"
		if n := len(e.models.IDs()); n > 0 {
			models = fmt.Sprintf("%d of its models are described", n)
		}
		switch {
		case e.obstacle.what == "":
			all = append(all, good("provider", "%s can be used; %s", e.name, models))
		case e.configured:
			all = append(all, doubtful("provider", "%s cannot be used: %s", e.name, e.obstacle.what))
		default:
			all = append(all, good("provider", "%s is not used: %s", e.name, e.obstacle.what))
		}
	}
	return all
}

func (o *doctorOptions) toolbox(c *config) finding {
	tools, err := o.f.tools("")
	if err != nil {
		return bad("tools", err)
	}
	for _, name := range c.tools {
		if _, ok := tools.Lookup(name); !ok {
			missing := fmt.Sprintf("new sessions get the tool %q, which does not exist", name)
			if near := tools.Nearest(name); len(near) > 0 {
				missing += "; nearest: " + strings.Join(near, ", ")
			}
			return bad("tools", &failure{code: exitRefused, tag: "missing_identities", message: missing})
		}
	}
	if len(c.tools) == 0 {
		return good("tools", "new sessions get none")
	}
	return good("tools", "new sessions get %v", c.tools)
}

// sessionsOf looks at the sessions from outside.
func sessionsOf(ctx context.Context, repo *store.Repo) []finding {
	listed, err := repo.List(ctx)
	if err != nil {
		return []finding{bad("sessions", err)}
	}
	damaged, live, stale := 0, 0, 0
	for _, l := range listed {
		if l.Err != nil {
			damaged++
			continue
		}
		if l.Ref.Legacy {
			continue
		}
		switch lease, err := repo.Lease(ctx, l.Ref); {
		case err != nil:
			damaged++
		case lease != nil && lease.Live:
			live++
		case lease != nil:
			stale++
		}
	}
	sessions := good("sessions", "%d, none of them damaged from outside", len(listed))
	if damaged > 0 {
		sessions = doubtful("sessions", "%d, of which %d cannot be read: `drover list` says why", len(listed), damaged)
	}
	leases := good("owners", "%d sessions are owned by a living process", live)
	if stale > 0 {
		leases = doubtful("owners", "%d sessions are owned by a living process, %d by one that ended without giving them up; the next writer takes over", live, stale)
	}
	return []finding{sessions, leases, leftoversOf(ctx, repo)}
}

func leftoversOf(ctx context.Context, repo *store.Repo) finding {
	paths, err := repo.Leftovers(ctx)
	switch {
	case err != nil:
		return bad("leftovers", err)
	case len(paths) > 0:
		return doubtful("leftovers", "%d temporary files of sessions that never came into being; the next new session removes them", len(paths))
	}
	return good("leftovers", "none")
}
