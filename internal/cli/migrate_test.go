package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
	"github.com/drover-run/drover/pkg/store/sqlite"
)

// A session below testdata/v1 was written by the last drover of storage version 1
// and stopped at the point of its name. @DIR@ stands for the folder with its model's
// script.
func recorded(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/v1/*.jsonl")
	if err != nil || len(paths) < 15 {
		t.Fatalf("found %v, %v", paths, err)
	}
	return paths
}

// restore puts a recorded session into a repository of its own.
func restore(t *testing.T, path string, d store.Driver) (w killWorld, file string) {
	t.Helper()
	w = killWorld{repo: t.TempDir(), session: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	script := "responses:\n" + strings.Repeat("  - text: answered\n", 10)
	if err := os.WriteFile(filepath.Join(w.repo, "script.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(w.repo, w.session+".jsonl")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("@DIR@"), []byte(w.repo)), 0o600); err != nil {
		t.Fatal(err)
	}
	if d.Name() == "jsonl" {
		return w, file
	}
	v, err := jsonl.Driver{}.View(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := v.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(w.repo, w.session+d.Ext())
	err = d.Build(t.Context(), database, snap, store.BuildOptions{})
	if err := errors.Join(err, v.Close(), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	return w, database
}

// want runs a command and wants one of the codes.
func (w killWorld) want(t *testing.T, codes []exitCode, args ...string) string {
	t.Helper()
	code, out := w.here(args...)
	for _, c := range codes {
		if code == c {
			return out
		}
	}
	t.Fatalf("drover %s: %d, %s", strings.Join(args, " "), code, out)
	return ""
}

var fine = []exitCode{exitOK}

// TestB50RecordedSessions: what the old version left behind is read as it is,
// changes no byte of it, and goes on to its end, whichever way it is migrated.
func TestB50RecordedSessions(t *testing.T) {
	for _, path := range recorded(t) {
		for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".jsonl")+"/"+d.Name(), func(t *testing.T) {
				t.Parallel()
				w, file := restore(t, path, d)
				before, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				shown := w.want(t, fine, "show", w.session, "--json")
				w.want(t, fine, "inspect", w.session, "--snapshot", "--json")
				w.want(t, fine, "verify", w.session)
				w.want(t, fine, "compact-file", w.session, "--dry-run")
				for _, how := range []string{"--status", "--dry-run"} {
					wantMigration(t, w.want(t, fine, "migrate", w.session, how, "--json"), 1, "would-migrate")
				}
				if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
					t.Fatalf("reading has changed the file: %v", err)
				}
				if d.Name() == "sqlite" { // a JSONL session is migrated by its drive
					wantMigration(t, w.want(t, fine, "migrate", w.session, "--json"), 1, "migrated")
					if got := w.want(t, fine, "show", w.session, "--json"); got != shown {
						t.Errorf("shown is %s, was %s", got, shown)
					}
				}
				w.settle(t)
				wantMigration(t, w.want(t, fine, "migrate", w.session, "--json"), 2, "current")
			})
		}
	}
}

// settle drives the session until nothing of it is open.
func (w killWorld) settle(t *testing.T) {
	t.Helper()
	settled := []exitCode{exitOK, exitFailed, exitAborted, exitRefused} // refused: nothing is open
	w.want(t, settled, "drive", w.session, "--wait-retry", "--poll-deferred", "--passes", "until-settled")
	w.want(t, fine, "verify", w.session)
	var inspection struct {
		Lanes []struct {
			Current json.RawMessage `json:"current"`
		} `json:"lanes"`
	}
	if err := json.Unmarshal([]byte(w.want(t, fine, "inspect", w.session, "--json")), &inspection); err != nil {
		t.Fatal(err)
	}
	for _, lane := range inspection.Lanes {
		if string(lane.Current) != "null" {
			t.Errorf("%s still has %s", w.session, lane.Current)
		}
	}
}

func wantMigration(t *testing.T, out string, from int64, status string) {
	t.Helper()
	var got struct {
		Items []struct {
			From, To int64
			Steps    []string
			Status   string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Items) != 1 {
		t.Fatalf("%s: %v", out, err)
	}
	if i := got.Items[0]; i.From != from || i.To != store.StorageVersion || i.Status != status || int64(len(i.Steps)) != i.To-i.From {
		t.Errorf("migration %+v, want %s from %d", i, status, from)
	}
}

// A process that migrates a session and moves it is killed at random instants: the
// session is there, whole, and the same command finishes (D64).
func TestMigrationKilledAtRandom(t *testing.T) {
	kills := 6
	if os.Getenv("DROVER_TEST_LONG") != "" {
		kills = 50
	}
	path, err := exec.LookPath("drover")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []store.Driver{jsonl.Driver{}, sqlite.Driver{}} {
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			to := map[string]string{"jsonl": "sqlite", "sqlite": "jsonl"}[d.Name()]
			for k := newInstants(kills); k.more(t); {
				w, _ := restore(t, "testdata/v1/tools_ready.jsonl", d)
				shown := w.want(t, fine, "show", w.session, "--json")
				cmd := exec.Command(path, "migrate", w.session, "--backend", to)
				cmd.Env = append(os.Environ(), "DROVER_REPO="+w.repo, "HOME=/")
				k.kill(t, cmd)
				for range 2 {
					if got := w.want(t, fine, "show", w.session, "--json"); got != shown {
						t.Fatalf("seed %d, try %d: shown is %s, was %s", k.seed, k.tries, got, shown)
					}
					w.want(t, fine, "migrate", w.session, "--backend", to)
				}
				left, err := filepath.Glob(filepath.Join(w.repo, ".*tmp*"))
				if err != nil || len(left) > 0 {
					t.Errorf("left are %v, %v", left, err)
				}
				w.settle(t)
			}
		})
	}
}
