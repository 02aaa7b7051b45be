package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

const (
	erased       = "ERASE-me"
	erasedTimes  = 400
	erasedInText = "a text that says " + erased + " and goes on for a while, so that the file has some size"
)

// Killed at random instants, a rewrite leaves the old session or the new one, and
// the next run finishes (B53). As in TestKillAtRandom, a timer kills the child.
func TestB53RewriteKilledAtRandom(t *testing.T) {
	kills := 8
	if os.Getenv("DROVER_TEST_LONG") != "" {
		kills = 50
	}
	for i, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			whole := sessionToErase(t, i)
			rules := filepath.Join(t.TempDir(), "rules")
			if err := os.WriteFile(rules, []byte(erased+" ==> [gone]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for k := newInstants(kills); k.more(t); {
				repo := filepath.Join(t.TempDir(), "repo")
				if err := os.CopyFS(repo, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				k.kill(t, drover(t, repo, "rewrite", "s", "--redact-file", rules).Cmd)
				eitherWhole(t, repo)
				output(t, repo, "rewrite", "s", "--redact-file", rules)
				if n := erasedIn(t, repo); n > 0 {
					t.Errorf("the text is found %d times after the next run", n)
				}
				if left, _ := filepath.Glob(filepath.Join(repo, ".*tmp-*")); len(left) > 0 {
					t.Errorf("left over: %v", left)
				}
			}
		})
	}
}

// sessionToErase is a repository with a session that says the text many times.
func sessionToErase(t *testing.T, driver int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	repo, err := store.NewRepo(store.RepoOptions{Dir: dir, Drivers: drivers()[driver:]})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := repo.Create(t.Context(), store.CreateOptions{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Mutate(t.Context(), store.MainLane, func(m *store.Mutator) error {
		var tx store.Tx
		parent := ""
		for range erasedTimes {
			id := s.IDs().NewID()
			tx = append(tx, store.InsertEntry(store.MessageEntry(id, parent, message.NewUser(erasedInText, nil, 1))))
			parent = id
		}
		_, err := m.Commit(append(tx, store.LaneLeaf(store.MainLane).Set(store.LeafID(parent))))
		return err
	})
	if err := firstOf(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// eitherWhole wants a sound session that says the text everywhere or nowhere.
func eitherWhole(t *testing.T, repo string) {
	t.Helper()
	output(t, repo, "verify", "s")
	said := output(t, repo, "show", "s", "--json")
	switch n := strings.Count(said, erased); {
	case n != 0 && n != erasedTimes:
		t.Errorf("the text is there %d times", n)
	case n == 0 && strings.Count(said, "[gone]") != erasedTimes:
		t.Error("the text is gone, and so is more")
	}
}

// erasedIn counts the text in all files of a repository.
func erasedIn(t *testing.T, repo string) (n int) {
	t.Helper()
	files, err := os.ReadDir(repo)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(repo, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(text, []byte(erased))
	}
	return n
}

// A search index that cannot be proven clean is told, and the session is done
// (D53).
func TestIndexNotProven(t *testing.T) {
	repo := sessionToErase(t, 1)
	rules := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(rules, []byte(erased+" ==> [gone]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, failing := range []bool{true, false} {
		var out, errs bytes.Buffer
		f := newFactory([]string{"HOME=/", "DROVER_REPO=" + repo}, newStreams(strings.NewReader(""), &out, &errs))
		var purged []string
		f.purgeIndex = func(_ context.Context, id string, _ []string) error {
			purged = append(purged, id)
			if failing {
				return fmt.Errorf("a row is left")
			}
			return nil
		}
		code := run(f, []string{"rewrite", "s", "--redact-file", rules, "--json"})
		switch {
		case failing && (code != exitPartial || !strings.Contains(errs.String(), `"code":"index_not_proven"`)):
			t.Errorf("exit code %d: %s", code, errs.String())
		case !failing && code != exitOK:
			t.Errorf("exit code %d: %s", code, errs.String())
		}
		if len(purged) != 1 || purged[0] != "s" {
			t.Errorf("purged %v", purged)
		}
		if n := erasedIn(t, repo); n > 0 {
			t.Errorf("the text is found %d times", n)
		}
	}
}
