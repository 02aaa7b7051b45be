package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// movedAway is an encoding of which a session moves to another one when somebody
// begins to wait for it.
type movedAway struct {
	store.Driver
	move func()
}

func (m movedAway) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	m.move()
	return m.Driver.Open(ctx, path, o)
}

func (m movedAway) Claim(ctx context.Context, path string, o store.OpenOptions) (store.Claim, error) {
	m.move()
	return m.Driver.Claim(ctx, path, o)
}

// A session that moves while a command waits for it is followed, by a deletion too.
func TestSessionMovesMeanwhile(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(rules, []byte("ERASE-me ==> [gone]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"jsonl": "sqlite", "sqlite": "jsonl"} {
		for _, c := range []struct {
			args []string
			code exitCode
			then []string // shows what came of it
			want string
		}{
			{[]string{"name", "s", "new"}, exitOK, []string{"name", "s"}, "new"},
			{[]string{"prompt", "s", "and on"}, exitOK, []string{"show", "s"}, "and on"},
			{[]string{"compact-file", "s"}, exitOK, []string{"show", "s"}, "ERASE-me"},
			{[]string{"verify", "s", "--repair-index"}, exitOK, []string{"show", "s"}, "ERASE-me"},
			{[]string{"rewrite", "s", "--redact-file", rules}, exitOK, []string{"show", "s"}, "[gone]"},
			{[]string{"migrate", "s", "--backend", to}, exitOK, []string{"inspect", "s", "--json"}, `"backend":"` + to + `"`},
			{[]string{"delete", "s", "--yes"}, exitOK, []string{"tombstones", "list"}, "s "},
		} {
			t.Run(from+"/"+c.args[0], func(t *testing.T) {
				w := killWorld{repo: t.TempDir()}
				for _, args := range [][]string{{"create", "--backend", from, "--id", "s"}, {"prompt", "s", "ERASE-me"}} {
					if code, out := w.here(args...); code != exitOK {
						t.Fatal(code, out)
					}
				}
				move := sync.OnceFunc(func() {
					if code, out := w.here("migrate", "s", "--backend", to, "--no-backup"); code != exitOK {
						t.Error(code, out)
					}
				})
				var stdout, stderr bytes.Buffer
				f := newFactory([]string{"HOME=/", "DROVER_REPO=" + w.repo}, newStreams(strings.NewReader(""), &stdout, &stderr))
				f.drivers = slices.Clone(f.drivers)
				for i, d := range f.drivers {
					if d.Name() == from {
						f.drivers[i] = movedAway{d, move}
					}
				}
				if code := run(f, c.args); code != c.code {
					t.Errorf("exit code %d, want %d: %s%s", code, c.code, stdout.String(), stderr.String())
				}
				if code, out := w.here(c.then...); code != exitOK || !strings.Contains(out, c.want) {
					t.Errorf("%v: %d %s", c.then, code, out)
				}
			})
		}
	}
}
