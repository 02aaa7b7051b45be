package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// realFolder is a folder without symbolic links, or as it is named where that
// cannot be told: it may be gone.
func realFolder(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// unusableFolder says why tools cannot work in a folder, "" when they can.
func unusableFolder(path string) string {
	if path == "" {
		return "the session has no working folder"
	}
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if link, err := os.Lstat(path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			return fmt.Sprintf("%s is a symbolic link to nothing", escapeLine(path))
		}
		return fmt.Sprintf("%s does not exist", escapeLine(path))
	}
	if err == nil && !fi.IsDir() {
		return fmt.Sprintf("%s is no folder", escapeLine(path))
	}
	if err == nil {
		err = enter(path)
	}
	if err != nil {
		return fmt.Sprintf("%s cannot be used: %v", escapeLine(path), errors.Unwrap(err))
	}
	return ""
}

// enter reads a folder and looks at what lies in it, as every command would.
func enter(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err := d.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = os.Stat(path + "/.")
	return err
}

func cwdRefusal(at, path, why string) *failure {
	f := &failure{code: exitRefused, tag: "cwd_unusable", message: "the tools have no folder to work in: " + why, details: func(o *object) { o.str("cwd", path) }}
	return f.withHint("give the session another folder: `drover prompt %s --cwd DIR ...`; without tools (--tools '') it needs none", at)
}

// folder is the working folder of a prompt.
type folder struct {
	at       string // how a hint names the session
	path     string
	replaces bool // the session's own is another, or none
}

// workingFolder finds the folder that a prompt works in: the one that the flag
// names, or the session's. A hint names the session as at.
func workingFolder(ctx context.Context, s *store.Session, at, flag string) (folder, error) {
	f := folder{at: at}
	own, err := store.WorkingFolder(ctx, s)
	if err != nil || flag == "" {
		f.path = own
		return f, err
	}
	if f.path, err = filepath.Abs(flag); err != nil {
		return f, fmt.Errorf("locate --cwd: %w", err)
	}
	f.replaces = f.path != own
	return f, nil
}

// check refuses a prompt whose tools could not work in the folder. A lane without
// tools needs none; a folder that is given now must be one.
func (f folder) check(hasTools func() (bool, error)) error {
	why := unusableFolder(f.path)
	if why == "" {
		return nil
	}
	needed := f.replaces
	if !needed {
		var err error
		if needed, err = hasTools(); err != nil {
			return err
		}
	}
	if needed {
		return cwdRefusal(f.at, f.path, why)
	}
	return nil
}

// hasTools tells whether a lane will have tools once the setters are applied.
func (o *promptOptions) hasTools(ctx context.Context, s *store.Session, c engine.Configure) (bool, error) {
	if c.ActiveToolNames != nil {
		return len(*c.ActiveToolNames) > 0, nil
	}
	cfg, ok, err := store.Get(ctx, s, store.LaneConfig(o.lane))
	if err == nil && !ok {
		return len(o.config.tools) > 0, nil
	}
	return len(cfg.Value.ActiveToolNames) > 0, err
}

// record makes the folder the session's from now on, and accepts the prompt. One
// that is refused leaves the session with the folder that it had (D40).
func (f folder) record(ctx context.Context, s *store.Session, lane string, accept func() (engine.Admission, error)) (engine.Admission, error) {
	if !f.replaces {
		return accept()
	}
	before, had, err := store.Get(ctx, s, store.SessionCWD())
	if err == nil {
		err = set(ctx, s, lane, store.SessionCWD().Set(f.path))
	}
	if err != nil {
		return engine.Admission{}, err
	}
	a, err := accept()
	if _, faulted := errors.AsType[*store.Fault](err); err == nil || faulted {
		return a, err
	}
	back := store.SessionCWD().Delete()
	if had {
		back = store.SessionCWD().Set(before.Value)
	}
	return a, errors.Join(err, set(context.WithoutCancel(ctx), s, lane, back))
}

func set(ctx context.Context, s *store.Session, lane string, w store.Write) error {
	return s.Mutate(ctx, lane, func(m *store.Mutator) error {
		_, err := m.Commit(store.Tx{w})
		return err
	})
}
