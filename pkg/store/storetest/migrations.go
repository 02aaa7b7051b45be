package storetest

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// The rules of storage versions (spec Part 7, D9, D52).
var migrationRules = []rule{
	{"an older session is migrated by its opening: values and elements, every number kept, all else byte for byte", migratesOnOpen},
	{"B50: what the migration does not know survives it", keepsTheUnknown},
	{"a view shows an older session migrated and leaves it as it is", viewsOlder},
	{"a fork of an older session that nobody opened has the current version", forksOlder},
	{"a conversion that fails leaves the session as it was", migrationRefused},
	{"without a chain an older session is refused", refusesOlder},
	{"a migration beside a reader that began before it", migratesBesideReader},
}

// wrapping puts what it converts into an object, and deletes what is "gone".
var wrapping = store.Migrations{{To: store.StorageVersion, Name: "wrapped", Convert: map[string]store.Conversion{
	"app.value": wrap, "app.list": wrap, "app.gone": func(string, json.RawMessage) (json.RawMessage, error) { return nil, nil },
}}}

func wrap(_ string, stored json.RawMessage) (json.RawMessage, error) {
	switch rawjson.KindOf(stored) {
	case rawjson.Object:
		return stored, nil
	case rawjson.Bool:
		return nil, errors.New("a truth is nothing to wrap")
	}
	return append(append([]byte(`{"was":`), stored...), '}'), nil
}

var (
	goneValue = store.NewValue[json.RawMessage]("app.gone", "v")
	goneList  = store.NewList[json.RawMessage]("app.gone", "l")
	unknown   = store.NewValue[json.RawMessage]("pi.novel", "k")
)

// older is a closed session of the version before, with the given writes beside
// what worn has; before is what it holds.
func (f *fixture) older(t *testing.T, writes ...store.Write) (r *store.Repo, ref store.Ref, before []store.Record) {
	t.Helper()
	r, s, ref := f.worn(t)
	if _, err := f.driver.Header(t.Context(), ref.Path); err != nil || f.driver.Name() == "memory" {
		t.Skip("this storage is always current")
	}
	if len(writes) > 0 {
		commitAs(t, s, writes...)
	}
	before = records(t, s)
	closeSession(t, s)
	makeOlder(t, f.driver, ref.Path, s.Header(), before)
	return r, ref, before
}

// makeOlder writes a session as the version before would have.
func makeOlder(t testing.TB, d store.Driver, path string, h store.Header, records []store.Record) {
	t.Helper()
	h.StorageVersion = store.StorageVersion - 1
	if err := d.Build(t.Context(), path, store.NewSnapshot(h, records), store.BuildOptions{Replace: true, NoSync: true}); err != nil {
		t.Fatal(err)
	}
}

// afterWrapping is what the migration makes of records.
func afterWrapping(before []store.Record) []store.Record {
	var after []store.Record
	for _, r := range before {
		switch r.Address.Namespace {
		case "app.gone":
			continue
		case "app.value", "app.list":
			r.Value, _ = wrap("", r.Value)
		}
		after = append(after, r)
	}
	return after
}

func migratesOnOpen(t *testing.T, f *fixture) {
	var writes []store.Write
	for range 40 {
		writes = append(writes, listB.Append(json.RawMessage(`"`+string(make40k())+`"`)))
	}
	r, ref, before := f.older(t, append(writes, goneValue.Set(raw("1")), goneList.Append(raw("1")), goneList.Append(raw("2")), valueB.Set(raw(`{"was":"wrapped already"}`)))...)
	s := openSession(t, r, ref)
	want := afterWrapping(before)
	same(t, "records", records(t, s), want)
	same(t, "version", s.Header().StorageVersion, int64(store.StorageVersion))
	same(t, "generation", s.Header().Generation, int64(1))
	last := before[len(before)-1].Seq
	commitAs(t, s, valueB.Set(raw("2")))
	if seq := valueSeq(t, s); seq <= last {
		t.Errorf("goes on at %d after %d", seq, last)
	}
	closeSession(t, s)
	s = openSession(t, r, ref)
	same(t, "records, opened again", len(records(t, s)), len(want))
	for p := range store.Verify(t.Context(), s) {
		if p.Code != "unknown_namespace" {
			t.Errorf("%+v", p)
		}
	}
	same(t, "left over", temporaries(t, ref.Path), []string(nil))
}

// make40k makes elements so large that a few fill a page.
func make40k() []byte {
	b := make([]byte, 40<<10)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

func keepsTheUnknown(t *testing.T, f *fixture) {
	entry := customEntry("novel", "e3", "x", raw(`{"a":1.0,"a":"\ud800"}`))
	r, ref, before := f.older(t, unknown.Set(raw(`{"b":1e2,"b":"\u00e9"}`)), entry)
	s := openSession(t, r, ref)
	same(t, "records", records(t, s), afterWrapping(before))
	wantValue(t, s, unknown.Address(), before[len(before)-2].Seq, `{"b":1e2,"b":"\u00e9"}`)
}

func viewsOlder(t *testing.T, f *fixture) {
	r, ref, before := f.older(t, goneValue.Set(raw("1")), goneList.Append(raw("1")))
	bytes := fileBytes(t, ref.Path)
	v, err := r.View(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	want := afterWrapping(before)
	same(t, "records", records(t, v), want)
	values, err := v.ScanValues(t.Context(), store.Address{Namespace: "app.value"})
	if err != nil || len(values) != 1 || string(values[0].Value)[:8] != `{"was":"` {
		t.Errorf("values %s, %v", values, err)
	}
	got, _ := value(t, v, valueA.Address())
	same(t, "one value", got, values[0])
	wantAbsent(t, v, goneValue.Address())
	wantList(t, v, goneList.Address(), store.ListQuery{})
	for _, e := range list(t, v, listA.Address(), store.ListQuery{}) {
		same(t, "element", rawjson.KindOf(e.Value), rawjson.Object)
	}
	for p := range store.Verify(t.Context(), v) {
		t.Errorf("%+v", p)
	}
	same(t, "version of the store", v.Header().StorageVersion, int64(store.StorageVersion-1))
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	same(t, "file", fileBytes(t, ref.Path) == bytes, true)
}

func forksOlder(t *testing.T, f *fixture) {
	r, ref, _ := f.older(t)
	fork, err := r.Fork(t.Context(), ref, nil, store.ForkOptions{ID: "s2"})
	if err != nil {
		t.Fatal(err)
	}
	s := openSession(t, r, fork.Ref)
	same(t, "version", s.Header().StorageVersion, int64(store.StorageVersion))
	got, _ := value(t, s, valueA.Address())
	same(t, "value", rawjson.KindOf(got.Value), rawjson.Object)
}

func migrationRefused(t *testing.T, f *fixture) {
	r, ref, before := f.older(t, valueB.Set(raw("true")))
	for range 2 {
		_, err := r.Open(t.Context(), ref)
		var corrupt *store.Corrupt
		if !errors.As(err, &corrupt) {
			t.Fatalf("opened: %v", err)
		}
		v, err := f.driver.View(t.Context(), ref.Path)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "records", records(t, v), before)
		same(t, "version", v.Header().StorageVersion, int64(store.StorageVersion-1))
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	same(t, "left over", temporaries(t, ref.Path), []string(nil))
}

func refusesOlder(t *testing.T, f *fixture) {
	_, ref, _ := f.older(t)
	r, err := store.NewRepo(store.RepoOptions{Dir: f.dir, Drivers: []store.Driver{f.driver}, Now: func() int64 { return f.now }})
	if err != nil {
		t.Fatal(err)
	}
	want := store.OlderVersion{Path: ref.Path, Found: store.StorageVersion - 1, Supported: store.StorageVersion}
	_, openErr := r.Open(t.Context(), ref)
	_, viewErr := r.View(t.Context(), ref)
	for _, err := range []error{openErr, viewErr} {
		var older *store.OlderVersion
		if !errors.As(err, &older) || *older != want {
			t.Errorf("got %v", err)
		}
	}
}

func migratesBesideReader(t *testing.T, f *fixture) {
	r, ref, before := f.older(t)
	v, err := f.driver.View(t.Context(), ref.Path)
	if err != nil {
		t.Fatal(err)
	}
	s := openSession(t, r, ref)
	same(t, "what the owner sees", records(t, s), afterWrapping(before))
	same(t, "what the reader sees", records(t, v), before)
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func fileBytes(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
