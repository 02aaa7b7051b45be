package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/drover-run/drover/pkg/store"
)

// oldSession is a session as storage version 1 left it, tables included.
func oldSession(t *testing.T, values int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s1.db")
	build(t, path, store.NewSnapshot(header("s1"), nil))
	b := open(t, path, store.OpenOptions{})
	for i := range values {
		commit(t, b, store.NewValue[int]("app", fmt.Sprint("k", i)).Set(i), store.NewList[int]("app.list", "l").Append(i))
	}
	mustClose(t, b)
	h, err := openHandle(path, dsnOwner)
	if err != nil {
		t.Fatal(err)
	}
	err = h.run(`ALTER TABLE session DROP COLUMN generation;
		UPDATE session SET storage_version = 1, metadata = replace(metadata, '"storageVersion":2', '"storageVersion":1')`)
	if err := errors.Join(err, h.close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// doubling is a migration that tells how much it has converted.
func doubling(converted func()) []store.Migration {
	twice := func(_ string, stored json.RawMessage) (json.RawMessage, error) {
		converted()
		n, err := strconv.Atoi(string(stored))
		return json.RawMessage(strconv.Itoa(2 * n)), err
	}
	return []store.Migration{{To: 2, Name: "doubled", Convert: map[string]store.Conversion{"app": twice, "app.list": twice}}}
}

func doubled(t *testing.T, path string) (version int64, values, elements []int) {
	t.Helper()
	r, err := openReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, r)
	all, err := r.ScanValues(ctx, store.Address{Namespace: "app"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		n, _ := strconv.Atoi(string(v.Value))
		values = append(values, n)
	}
	list, err := r.ReadList(ctx, store.Address{Namespace: "app.list", Key: "l"}, store.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		n, _ := strconv.Atoi(string(e.Value))
		elements = append(elements, n)
	}
	return r.Header().StorageVersion, values, elements
}

// A session whose tables are those of version 1 gets the column of version 2, and
// is read and verified before and after.
func TestMigrateTables(t *testing.T) {
	path := oldSession(t, 5)
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("before: %+v", found)
	}
	b := open(t, path, store.OpenOptions{})
	if err := b.Migrate(ctx, doubling(func() {})); err != nil {
		t.Fatal(err)
	}
	commit(t, b, userEntry("e", ""))
	mustClose(t, b)
	version, values, elements := doubled(t, path)
	want := []int{0, 2, 4, 6, 8}
	if version != 2 || !slices.Equal(values, want) || !slices.Equal(elements, want) {
		t.Errorf("version %d, %v, %v", version, values, elements)
	}
	if found := problemsOf(t, path); len(found) > 0 {
		t.Errorf("after: %+v", found)
	}
	var generation int
	ask(t, path, `SELECT generation FROM session`, &generation)
	if generation != 1 {
		t.Errorf("generation %d", generation)
	}
}

// childMigrate migrates a session and ends before the n-th conversion.
func childMigrate(args []string) error {
	left, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	b, err := Driver{}.Open(ctx, args[0], store.OpenOptions{})
	if err != nil {
		return err
	}
	err = b.(store.Migrator).Migrate(ctx, doubling(func() {
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}))
	if err != nil {
		return err
	}
	fmt.Println("migrated")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // before the session is closed
	select {}
}

// TestB50KilledMigration: whichever conversion kill -9 comes before, the session is
// old or new, and the next owner migrates it or finds it done.
func TestB50KilledMigration(t *testing.T) {
	const values = 3
	want := []int{0, 2, 4}
	for n := range 2*values + 1 {
		path := oldSession(t, values)
		c := startChild(t, "migrate", path, strconv.Itoa(n))
		line, _ := c.out.ReadString('\n')
		_ = c.cmd.Wait()
		if c.err.Len() > 0 {
			t.Fatalf("child %d: %s", n, c.err)
		}
		version, now, list := doubled(t, path)
		if done := line == "migrated\n"; done != (version == 2) || done != slices.Equal(now, want) || done != slices.Equal(list, want) {
			t.Errorf("killed before conversion %d: version %d, %v, %v", n, version, now, list)
		}
		b := open(t, path, store.OpenOptions{})
		if version == 1 {
			if err := b.Migrate(ctx, doubling(func() {})); err != nil {
				t.Fatal(err)
			}
		}
		mustClose(t, b)
		if version, now, list = doubled(t, path); version != 2 || !slices.Equal(now, want) || !slices.Equal(list, want) {
			t.Errorf("after the next owner: version %d, %v, %v", version, now, list)
		}
		if found := problemsOf(t, path); len(found) > 0 {
			t.Errorf("%+v", found)
		}
	}
}
