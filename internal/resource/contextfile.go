package resource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// ContextFile is a file that tells a model about the place that it works in.
type ContextFile struct {
	Path string
	Text string
}

// maxContextFile is the largest context file that is read, in bytes.
const maxContextFile = 64 << 10

// ContextFiles finds the files with these names in a folder and in those above it,
// up to the repository that the folder lies in, or else to the home below which it
// does; anywhere else only in the folder itself. The nearest comes last. Nothing
// beyond that reach is read, wherever links lead; a file that cannot be used is a
// Diagnostic.
func ContextFiles(folder, home string, names []string) ([]ContextFile, []Diagnostic) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil || !filepath.IsAbs(folder) {
		return nil, nil // tools say what is wrong with it
	}
	top := reach(folder, home)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, []Diagnostic{{top, reason(err).Error()}}
	}
	defer root.Close()
	var found []ContextFile
	var bad []Diagnostic
	for _, dir := range between(top, folder) {
		for _, name := range names {
			path := filepath.Join(dir, name)
			text, err := readBelow(root, top, path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				bad = append(bad, Diagnostic{path, reason(err).Error()})
			case text != "":
				found = append(found, ContextFile{path, text})
			}
		}
	}
	return found, bad
}

// reach is the outermost folder that context files of a folder may lie in.
func reach(folder, home string) string {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && trusted(info) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if home, err := filepath.EvalSymlinks(home); err == nil && filepath.IsAbs(home) && within(home, folder) && home != filepath.Dir(home) {
		return home
	}
	return folder
}

// trusted tells that nobody else has put a file there, as into /tmp anybody may.
func trusted(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Getuid())
}

func within(top, folder string) bool {
	rel, err := filepath.Rel(top, folder)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// between lists the folders from top down to folder, both included.
func between(top, folder string) []string {
	var dirs []string
	for dir := folder; ; dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
		if dir == top {
			return dirs
		}
	}
}

// readBelow reads a file that must lie below a root, links followed.
func readBelow(root *os.Root, top, path string) (string, error) {
	rel, err := filepath.Rel(top, path)
	if err != nil {
		return "", err
	}
	// Opening what is no file, such as a pipe, must not wait for its other end.
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxContextFile+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxContextFile:
		return "", fmt.Errorf("it has more than %d bytes", maxContextFile)
	case !utf8.Valid(b):
		return "", errors.New("it is not UTF-8")
	}
	return strings.TrimSpace(plain(b)), nil
}
