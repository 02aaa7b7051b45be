package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// legacyFolder holds sessions that name the one behind them as their parent.
func legacyFolder(t *testing.T, files int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range files {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"s%03d","timestamp":"2026-01-01T00:00:00Z","cwd":"/","parentSession":"s%03d.jsonl"}`+"\n", i, min(i+1, files-1))
		for k := range 20 {
			text += fmt.Sprintf(`{"type":"message","id":"m%d","parentId":"m%d","timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":%q,"timestamp":1}}`+"\n", k, k-1, strings.Repeat("x", 500))
		}
		text = strings.Replace(text, `"parentId":"m-1"`, `"parentId":null`, 1)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%03d.jsonl", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A batch with a manifest that is killed at random instants, again and again, is
// finished by the next one: each session once, whole, under its parent (D64).
func TestImportIsKilledAtRandom(t *testing.T) {
	const kills, files = 25, 16
	for _, backend := range []string{"sqlite", "jsonl"} {
		t.Run(backend, func(t *testing.T) {
			path, err := exec.LookPath("drover-kill")
			if err != nil {
				t.Fatal(err)
			}
			in := legacyFolder(t, files)
			for k := newInstants(kills); k.more(t); {
				w := killWorld{repo: t.TempDir()}
				args := []string{"import-v3", in, "--manifest", filepath.Join(t.TempDir(), "done.ndjson"), "--backend", backend, "--jobs", "2", "--json"}
				for dead := true; dead; {
					cmd := exec.Command(path, args...)
					cmd.Env = append(os.Environ(), "DROVER_REPO="+w.repo, "HOME=/", "KILL_AFTER=0")
					dead = k.kill(t, cmd)
				}
				wantImported(t, w, args, files)
			}
		})
	}
}

// wantImported looks at a repository after a batch that ended well.
func wantImported(t *testing.T, w killWorld, args []string, files int) {
	t.Helper()
	if code, out := w.here("verify", "--all"); code != exitOK {
		t.Errorf("a session is damaged: %d %s", code, out)
	}
	if code, out := w.here(args...); code != exitOK || !strings.Contains(out, fmt.Sprintf(`"skipped":%d,"failed":0`, files)) {
		t.Errorf("importing again: %d %s", code, out)
	}
	if left, err := filepath.Glob(filepath.Join(w.repo, ".*.tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	code, out := w.here("list", "--json", "--limit", "0", "--fields", "id,parentSessionId")
	if code != exitOK || strings.Count(out, `"id"`) != files {
		t.Errorf("list: %d %s", code, out)
	}
	for i := range files - 1 {
		if want := fmt.Sprintf(`"id":"s%03d","parentSessionId":"s%03d"`, i, i+1); !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
}
