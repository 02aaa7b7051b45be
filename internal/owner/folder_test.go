package owner

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFolder(t *testing.T) {
	base := socketFolder(t)
	env := func(vars map[string]string) func(string) string {
		return func(name string) string { return vars[name] }
	}
	uid := "drover-" + strconv.Itoa(os.Getuid())
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"runtime folder", map[string]string{"XDG_RUNTIME_DIR": base}, filepath.Join(base, "drover")},
		{"again", map[string]string{"XDG_RUNTIME_DIR": base}, filepath.Join(base, "drover")},
		{"a runtime folder that is not there", map[string]string{"XDG_RUNTIME_DIR": base + "/none", "TMPDIR": base}, filepath.Join(base, uid)},
		{"a relative one", map[string]string{"XDG_RUNTIME_DIR": ".", "TMPDIR": base}, filepath.Join(base, uid)},
		{"none", map[string]string{"TMPDIR": base}, filepath.Join(base, uid)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantEqual(t, "folder", must[string](t)(Folder(env(tt.env))), tt.want)
			info := must[fs.FileInfo](t)(os.Lstat(tt.want))
			wantEqual(t, "mode", info.Mode().Perm(), fs.FileMode(0o700))
		})
	}
}

func TestFolderIsRefused(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"open to others", func(t *testing.T, path string) {
			must[any](t)(nil, os.Mkdir(path, 0o700))
			must[any](t)(nil, os.Chmod(path, 0o750))
		}, "has mode 0750 instead of 0700"},
		{"a link", func(t *testing.T, path string) {
			must[any](t)(nil, os.Symlink(t.TempDir(), path))
		}, "is a link"},
		{"a link to nowhere", func(t *testing.T, path string) {
			must[any](t)(nil, os.Symlink("/nowhere", path))
		}, "is a link"},
		{"a file", func(t *testing.T, path string) {
			must[any](t)(nil, os.WriteFile(path, nil, 0o700))
		}, "is no folder"},
		{"another user's", func(t *testing.T, path string) {
			if os.Getuid() != 0 {
				t.Skip("only root can give a folder away")
			}
			must[any](t)(nil, os.Mkdir(path, 0o700))
			must[any](t)(nil, os.Chown(path, 12345, -1))
		}, "belongs to another user"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := socketFolder(t)
			path := filepath.Join(base, "drover")
			tt.make(t, path)
			_, err := Folder(func(name string) string { return map[string]string{"XDG_RUNTIME_DIR": base}[name] })
			var refused *FolderError
			if !errors.As(err, &refused) || !errors.Is(err, fs.ErrPermission) {
				t.Fatalf("error %v, want a FolderError about permission", err)
			}
			wantEqual(t, "message", refused.Error(), "socket folder "+path+" "+tt.want)
			_, err = Serve(t.Context(), Options{Path: filepath.Join(path, "0123456789abcdef")})
			if !errors.As(err, &refused) {
				t.Fatalf("serving there: %v, want a FolderError", err)
			}
		})
	}
}

func TestSocketPath(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, path := range []string{a, b} {
		must[any](t)(nil, os.WriteFile(path, nil, 0o600))
	}
	must[any](t)(nil, os.Symlink(a, filepath.Join(dir, "link")))
	name := func(file string, fence int64) string {
		path := must[string](t)(SocketPath("/run/x", file, fence))
		wantEqual(t, "folder", filepath.Dir(path), "/run/x")
		if base := filepath.Base(path); len(base) != 16 || strings.Trim(base, "0123456789abcdef") != "" {
			t.Errorf("name %q is not 16 hexadecimal digits", base)
		}
		return path
	}
	wantEqual(t, "the name of a link", name(filepath.Join(dir, "link"), 1), name(a, 1))
	names := map[string]bool{name(a, 1): true, name(a, 2): true, name(b, 1): true}
	wantEqual(t, "different names", len(names), 3)

	if _, err := SocketPath("/run/x", filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	long := "/" + strings.Repeat("x", maxSocketPath-18)
	must[string](t)(SocketPath(long, a, 1))
	var refused *FolderError
	if _, err := SocketPath(long+"x", a, 1); !errors.As(err, &refused) {
		t.Errorf("a name of %d bytes: %v", maxSocketPath+1, err)
	}
}

// leave makes a socket that nobody listens on, as a killed owner does.
func leave(t *testing.T, path string, old time.Duration) {
	t.Helper()
	l := must[*net.UnixListener](t)(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))
	l.SetUnlinkOnClose(false)
	must[any](t)(nil, l.Close())
	at := time.Now().Add(-old)
	must[any](t)(nil, os.Chtimes(path, at, at))
}

func TestServeRemovesWhatIsLeft(t *testing.T) {
	folder := socketFolder(t)
	in := func(name string) string { return filepath.Join(folder, name) }
	leave(t, in("0000000000000001"), 0)              // ours: removed at once
	leave(t, in("0000000000000002"), 2*time.Minute)  // another's, old
	leave(t, in("0000000000000003"), 30*time.Second) // perhaps bound and about to listen
	leave(t, in("strange"), 2*time.Minute)
	must[any](t)(nil, os.WriteFile(in("0000000000000004"), nil, 0o600))
	live := must[*net.UnixListener](t)(net.ListenUnix("unix", &net.UnixAddr{Name: in("0000000000000005"), Net: "unix"}))
	defer live.Close()
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"0000000000000004", "0000000000000005"} {
		must[any](t)(nil, os.Chtimes(in(name), past, past))
	}
	names := func() (all []string) {
		for _, e := range must[[]os.DirEntry](t)(os.ReadDir(folder)) {
			all = append(all, e.Name())
		}
		return all
	}

	s := must[*Server](t)(Serve(t.Context(), Options{Path: in("0000000000000001")}))
	info := must[fs.FileInfo](t)(os.Lstat(in("0000000000000001")))
	wantEqual(t, "mode of the socket", info.Mode(), fs.ModeSocket|0o600)
	wantEqual(t, "folder", names(), []string{"0000000000000001", "0000000000000003", "0000000000000004", "0000000000000005", "strange"})
	must[any](t)(nil, s.Close())
	must[any](t)(nil, s.Close())
	wantEqual(t, "folder after closing", names(), []string{"0000000000000003", "0000000000000004", "0000000000000005", "strange"})

	for _, taken := range []string{"0000000000000004", "0000000000000005"} {
		if s, err := Serve(t.Context(), Options{Path: in(taken)}); err == nil {
			t.Errorf("served at %s, which is taken", taken)
			_ = s.Close()
		}
	}
	wantEqual(t, "folder after refusals", names(), []string{"0000000000000003", "0000000000000004", "0000000000000005", "strange"})
}
