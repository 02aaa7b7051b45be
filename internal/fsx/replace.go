package fsx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// FileMode is the mode of every file that this package creates.
const FileMode fs.FileMode = 0o600

// DirMode is the mode of every folder that holds sessions.
const DirMode fs.FileMode = 0o700

// tempMark stands in the name of every temporary file, .NAME.tmp-RANDOM, and
// tempDigits is how many hexadecimal digits follow it.
const (
	tempMark   = ".tmp-"
	tempDigits = 8
)

// IsTemp reports whether a file name is that of a temporary file of any target.
func IsTemp(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".") && strings.Contains(base, tempMark)
}

// cutTempSuffix cuts off what follows the target's name in that of its temporary
// file: no other target's name continues so, not even one that contains the mark.
func cutTempSuffix(name string) (rest string, ok bool) {
	digits, ok := strings.CutPrefix(name, tempMark)
	if !ok || len(digits) < tempDigits || strings.Trim(digits[:tempDigits], "0123456789abcdef") != "" {
		return name, false
	}
	return digits[tempDigits:], true
}

// Temps lists the temporary files of the target at path, used or left over, and
// those whose names go on with one of the suffixes. Of a folder that may be
// searched but not listed nothing is known: none.
func Temps(path string, suffixes ...string) ([]string, error) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base)
		if !ok {
			continue
		}
		if rest, ok = cutTempSuffix(rest); ok && (rest == "" || slices.Contains(suffixes, rest)) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}

// TempTarget returns the name of the target that a file name, with or without one
// of the suffixes, is that of a temporary file of; false when it is of none.
func TempTarget(name string, suffixes ...string) (target string, ok bool) {
	for _, suffix := range suffixes {
		name = strings.TrimSuffix(name, suffix)
	}
	rest, dotted := strings.CutPrefix(name, ".")
	at := strings.LastIndex(rest, tempMark)
	if !dotted || at <= 0 {
		return "", false
	}
	if after, ok := cutTempSuffix(rest[at:]); !ok || after != "" {
		return "", false
	}
	return rest[:at], true
}

// ReplaceOptions govern a whole-file replacement.
type ReplaceOptions struct {
	// Existing allows an existing file to be replaced. Without it an existing
	// file makes Replace fail with an error that wraps fs.ErrExist, even one
	// that appears while the new content is being written.
	Existing bool
	// Ready, if set, is called with the name of the complete new file right
	// before that takes the old one's place; its error leaves the old one there.
	Ready func(temp string) error
	// Like, if set, is a file whose mode and owner a file that replaces none gets.
	Like fs.FileInfo
	// NoSync leaves out every fsync: for measurements only.
	NoSync bool
}

// Replace puts what write writes in the place of the file at path, in one step:
// a reader finds the old content or the new, a crash at any point leaves one of
// them, and power loss after Replace returned leaves the new one (D13). A
// replaced file keeps its mode and, where the caller may set it, its owner; a
// symbolic link keeps pointing where it does. The folder must exist. After a
// failure the old file stands and no temporary file is left; only a failure to
// sync the folder comes too late to undo a replacement.
func Replace(fsys FS, path string, o ReplaceOptions, write func(io.Writer) error) error {
	target, old, err := replaceTarget(path, o.Existing)
	if err != nil {
		return err
	}
	like := old
	if like == nil {
		like = o.Like
	}
	temp, err := writeTemp(fsys, target, like, o, write)
	if err != nil {
		return err
	}
	if o.Ready != nil {
		err = o.Ready(temp)
	}
	if err == nil {
		err = publish(fsys, temp, target, o)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(fsys, temp))
	}
	if o.NoSync {
		return nil
	}
	if err := fsys.SyncDir(filepath.Dir(target)); err != nil {
		if old == nil {
			// A file whose creation is not believed must not be found later.
			err = errors.Join(err, removeIfThere(fsys, target))
		}
		return fmt.Errorf("sync folder of %s: %w", target, err)
	}
	return nil
}

// replaceTarget follows symbolic links, so that the link itself survives, and
// returns what is there now, nil when nothing is.
func replaceTarget(path string, existing bool) (string, fs.FileInfo, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	} else if err != nil {
		return "", nil, err
	}
	if !existing {
		return "", nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, &fs.PathError{Op: "replace", Path: target, Err: errors.New("not a regular file")}
	}
	return target, info, nil
}

// writeTemp leaves a complete, synced temporary file or none.
func writeTemp(fsys FS, target string, like fs.FileInfo, o ReplaceOptions, write func(io.Writer) error) (name string, err error) {
	f, temp, err := CreateTemp(fsys, target)
	if err != nil {
		return "", err
	}
	open, complete := true, false
	defer func() { // also when write panics
		if complete {
			return
		}
		if open {
			f.Close()
		}
		err = errors.Join(err, removeIfThere(fsys, temp))
	}()
	if err := write(f); err != nil {
		return "", err
	}
	if err := KeepAttributes(f, like); err != nil {
		return "", fmt.Errorf("keep mode of %s: %w", target, err)
	}
	if !o.NoSync {
		if err := f.Sync(); err != nil {
			return "", fmt.Errorf("sync %s: %w", temp, err)
		}
	}
	open = false
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("close %s: %w", temp, err)
	}
	complete = true
	return temp, nil
}

// CreateTemp makes an empty private file beside target and returns its name. It
// is listed by Temps until it is removed or renamed.
func CreateTemp(fsys FS, target string) (File, string, error) {
	dir, base := filepath.Split(target)
	for range 100 {
		temp := filepath.Join(dir, fmt.Sprintf(".%s%s%0*x", base, tempMark, tempDigits, rand.Uint32()))
		f, err := fsys.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
		if !errors.Is(err, fs.ErrExist) {
			return f, temp, err
		}
	}
	return nil, "", fmt.Errorf("no free temporary name beside %s", target)
}

// KeepAttributes gives a file the mode of an old one and, where the caller may
// set it, its owner; nil is no old one.
func KeepAttributes(f File, old fs.FileInfo) error {
	if old == nil {
		return nil
	}
	if err := f.Chmod(old.Mode().Perm()); err != nil {
		return err
	}
	is, ok := old.Sys().(*syscall.Stat_t)
	if !ok || (int(is.Uid) == os.Geteuid() && int(is.Gid) == os.Getegid()) {
		return nil
	}
	err := f.Chown(int(is.Uid), int(is.Gid))
	if errors.Is(err, fs.ErrPermission) {
		return nil // only root may give files away
	}
	return err
}

func publish(fsys FS, temp, target string, o ReplaceOptions) error {
	if o.Existing {
		return fsys.Rename(temp, target)
	}
	return fsys.RenameNew(temp, target)
}

func removeIfThere(fsys FS, name string) error {
	err := fsys.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
