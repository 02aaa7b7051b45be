package tool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// files finds files for the tools of one session.
type files struct {
	cwd   string
	locks *locks
}

// CheckWorkingDir says why nothing can start in the session's directory, "" when
// it has none.
func CheckWorkingDir(dir string) error {
	if dir == "" {
		return errors.New("use the session's working directory: it has none")
	}
	// The dot asks for what a process needs that shall start there.
	_, err := os.Stat(dir + "/.")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("use the session's working directory: %s is gone", dir)
	case err != nil:
		return fmt.Errorf("use the session's working directory: %w", err)
	}
	return nil
}

// path returns where name is: below the working directory unless it is absolute
// or starts with ~/.
func (f *files) path(name string) (string, error) {
	if err := CheckWorkingDir(f.cwd); err != nil {
		return "", err
	}
	if err := noNUL(name, "path"); err != nil {
		return "", err
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
		return filepath.Join(home, rest), nil
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Join(f.cwd, name), nil
}

// lock waits until no other call changes the file at path, or ctx is done.
func (f *files) lock(ctx context.Context, path string) (unlock func(), err error) {
	return f.locks.lock(ctx, realPath(path))
}

// realPath is path without symbolic links, as far as it exists.
func realPath(path string) string {
	rest := ""
	for dir := path; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = parent
	}
}

// checkRegular says why what is at path is no file to read or replace.
func checkRegular(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case mode&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is a named pipe", path)
	case mode&fs.ModeSocket != 0:
		return fmt.Errorf("%s is a socket", path)
	case mode&fs.ModeDevice != 0:
		return fmt.Errorf("%s is a device", path)
	}
	return fmt.Errorf("%s is not a regular file", path)
}

// locks are one lock per path, each a channel that holds its one token, so that
// waiting for it can be given up.
type locks struct {
	mu     sync.Mutex
	byPath map[string]*pathLock
}

type pathLock struct {
	token chan struct{}
	users int // that hold it or wait for it
}

func newLocks() *locks { return &locks{byPath: map[string]*pathLock{}} }

func (l *locks) lock(ctx context.Context, path string) (unlock func(), err error) {
	p := l.enter(path)
	select {
	case <-p.token:
		return func() {
			p.token <- struct{}{}
			l.leave(path, p)
		}, nil
	case <-ctx.Done():
		l.leave(path, p)
		return nil, fmt.Errorf("wait for another change of %s: %w", path, context.Cause(ctx))
	}
}

func (l *locks) enter(path string) *pathLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.byPath[path]
	if p == nil {
		p = &pathLock{token: make(chan struct{}, 1)}
		p.token <- struct{}{}
		l.byPath[path] = p
	}
	p.users++
	return p
}

func (l *locks) leave(path string, p *pathLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(l.byPath, path)
	}
}
