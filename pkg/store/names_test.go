package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/store"
)

func TestNewIDsRiseWhateverTheClockDoes(t *testing.T) {
	now := int64(1_700_000_000_000)
	ids := store.NewIDs(func() int64 { return now }, nil)
	last := ""
	seen := map[string]bool{}
	for i := range 20_000 {
		switch i {
		case 10_000:
			now -= 3_600_000
		case 15_000:
			now += 7_200_000
		}
		id := ids.NewID()
		if id <= last || seen[id] {
			t.Fatalf("id %d is %s after %s", i, id, last)
		}
		last, seen[id] = id, true
	}
	// 5,000 ids of one millisecond are more than its counter holds.
	if ms, err := store.IDTime(last); err != nil || ms < now || ms > now+2 {
		t.Errorf("the last id's time is %d, %v; want about %d", ms, err, now)
	}
}

func TestIDsFromKnownRandomness(t *testing.T) {
	random := bytes.NewReader(append(bytes.Repeat([]byte{0xff}, 10), make([]byte, 20)...))
	ids := store.NewIDs(func() int64 { return 0x0123456789ab }, random)
	got := []string{ids.NewID(), ids.NewID(), ids.At(1)}
	want := []string{
		"01234567-89ab-77ff-bfff-ffffffffffff", // the counter starts below half
		"01234567-89ab-7800-8000-000000000000", // and rises
		"00000000-0001-7000-8000-000000000000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestIDTime(t *testing.T) {
	for _, ms := range []int64{0, 1, 1_700_000_000_000, 1<<48 - 1} {
		id := store.NewIDs(func() int64 { return 0 }, nil).At(ms)
		if got, err := store.IDTime(id); err != nil || got != ms {
			t.Errorf("time of %s: %d, %v; want %d", id, got, err, ms)
		}
	}
	for _, id := range []string{"", "x", "018BCFE5-6800-7000-8000-000000000000", "{018bcfe5-6800-7000-8000-000000000000}",
		"urn:uuid:018bcfe5-6800-7000-8000-000000000000", "018bcfe5680070008000000000000000", "018bcfe5-6800-4000-8000-000000000000"} {
		if ms, err := store.IDTime(id); err == nil {
			t.Errorf("time of %q: %d, want an error", id, ms)
		}
	}
	if now := store.SystemNow(); now < time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() {
		t.Errorf("the system's clock says %d", now)
	}
}

func TestB47CheckID(t *testing.T) {
	for _, id := range []string{"a", "A-1_b.c", "018bcfe5-6800-7000-8000-000000000000", strings.Repeat("x", 128), "_", "console", "COM0", "lpt"} {
		if err := store.CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for id, want := range map[string]string{
		"":                       "is empty",
		strings.Repeat("x", 129): "has 129 bytes, more than 128",
		".":                      `starts with '.'`,
		"..":                     `starts with '.'`,
		".hidden":                `starts with '.'`,
		"-rf":                    `starts with '-'`,
		"a..b":                   `holds ".."`,
		"../x":                   `starts with '.'`,
		"/etc/passwd":            `holds "/"`,
		"a/b":                    `holds "/"`,
		`a\b`:                    `holds "\\"`,
		"a\x00b":                 `holds "\x00"`,
		"a\n":                    `holds "\n"`,
		"%2e%2e":                 `holds "%"`,
		"a b":                    `holds " "`,
		"é":                      `holds "é"`,
		"\xff":                   `holds "\xff"`,
		"nul":                    "is the name of a device",
		"Con.txt":                "is the name of a device",
		"LPT9":                   "is the name of a device",
	} {
		err := store.CheckID(id)
		var invalid *store.InvalidID
		if !errors.As(err, &invalid) || *invalid != (store.InvalidID{ID: id, Reason: want}) {
			t.Errorf("%q: got %v, want %s", id, err, want)
		}
	}
}

func FuzzCheckID(f *testing.F) {
	for _, s := range []string{"a", "..", "a/b", "CON", "é", "\xff", "-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if store.CheckID(id) != nil {
			return
		}
		if len(id) == 0 || len(id) > 128 || id[0] == '.' || id[0] == '-' || strings.Contains(id, "..") ||
			strings.ContainsAny(id, "/\\\x00:*?\"<>|% \t\r\n") || !utf8.ValidString(id) {
			t.Errorf("accepted %q", id)
		}
	})
}

func TestAddressCheckAndString(t *testing.T) {
	for a, want := range map[store.Address]string{
		{Namespace: "n"}:                         "n",
		{Namespace: "n", Key: "k"}:               "n/k",
		{Namespace: "n", Key: "k/\xed\xa0\x80é"}: "n/k/\xed\xa0\x80é",
	} {
		if err := a.Check(); err != nil || a.String() != want {
			t.Errorf("%q: %v", a, err)
		}
	}
	for _, a := range []store.Address{{}, {Key: "k"}, {Namespace: "\x00"}, {Namespace: "n", Key: "\x00"}, {Namespace: "\xff"}, {Namespace: "n", Key: "\xed\xa0\xbd\xed\xb8\x80"}} {
		if a.Check() == nil {
			t.Errorf("%q: accepted", a)
		}
	}
}

func TestAddressReserved(t *testing.T) {
	for ns, want := range map[string]bool{
		"pi": true, "pi.x": true, "pi.lane.leaf": true, "drover.subs": true,
		"pip": false, "PI": false, "drover": false, "app.pi": false, "": false,
	} {
		if got := (store.Address{Namespace: ns}).Reserved(); got != want {
			t.Errorf("%q: reserved %v, want %v", ns, got, want)
		}
	}
}

func FuzzAddressCheck(f *testing.F) {
	f.Add("n", "k")
	f.Add("\xff", "\xed\xa0\xbd\xed\xb8\x80")
	f.Fuzz(func(t *testing.T, namespace, key string) {
		a := store.Address{Namespace: namespace, Key: key}
		if a.Check() != nil {
			return
		}
		// What passes is the same after a header, a line or a column carried it.
		h := store.Header{ID: namespace, StorageVersion: 1, CWD: key}
		line, err := h.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := store.ParseHeader(line)
		if err != nil || back.ID != namespace || back.CWD != key {
			t.Errorf("%q came back as %q, %q, %v", a, back.ID, back.CWD, err)
		}
	})
}

func TestHeaderRoundTrip(t *testing.T) {
	full := store.Header{
		ID: "s", StorageVersion: 2, CreatedAt: 3, CWD: "/a\n\"<é>", ParentSessionID: "p", LegacyParentSessionPath: "/p.jsonl",
		LegacySessionID: "../\xed\xa0\x80", Spawn: raw(`{"a":1.0}`), Generation: 4, Source: raw(`[1e2]`), NextSeq: 5,
		Extra: []store.HeaderField{{Key: raw(`"z\u0061"`), Value: raw(`{"b":[]}`)}, {Key: raw(`"y"`), Value: raw(`null`)}},
	}
	wantLine := `{"v":4,"kind":"header","id":"s","storageVersion":2,"createdAt":3,"cwd":"/a\n\"<é>","parentSessionId":"p",` +
		`"legacyParentSessionPath":"/p.jsonl","legacySessionId":"../\ud800","spawn":{"a":1.0},"generation":4,"source":[1e2],` +
		`"z\u0061":{"b":[]},"y":null,"nextSeq":5}`
	line, err := full.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantLine, string(line)); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
	back, err := store.ParseHeader(line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, back); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	wantMeta := `{"id":"s","createdAt":3,"storageVersion":2,"cwd":"/a\n\"<é>","parentSessionId":"p",` +
		`"legacyParentSessionPath":"/p.jsonl","legacySessionId":"../\ud800","spawn":{"a":1.0},"generation":4,"source":[1e2],` +
		`"z\u0061":{"b":[]},"y":null}`
	if diff := cmp.Diff(wantMeta, string(full.Metadata())); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestHeaderIsOneLine(t *testing.T) {
	h := store.Header{ID: "s", StorageVersion: 1, Spawn: raw("{\n  \"by\": \"a\\nb\"\n}"), Source: raw(" [ 1 ]\n")}
	line, err := h.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":0,"spawn":{"by":"a\nb"},"generation":0,"source":[1]}`
	if string(line) != want {
		t.Errorf("line %s, want %s", line, want)
	}
	h.Spawn = raw("{")
	if line, err := h.AppendJSON(nil); err == nil {
		t.Errorf("broken spawn wrote %s", line)
	}
	if want := `{"id":"s","createdAt":0,"storageVersion":1,"generation":0}`; string(h.Metadata()) != want {
		t.Errorf("metadata with a broken field: %s", h.Metadata())
	}
}

func TestParseHeaderRefuses(t *testing.T) {
	const good = `"v":4,"kind":"header","id":"s","storageVersion":1`
	if _, err := store.ParseHeader([]byte(" {" + good + "} ")); err != nil {
		t.Fatalf("the smallest header: %v", err)
	}
	for text, want := range map[string]string{
		``:                  "header is no JSON object",
		`[]`:                "header is no JSON object",
		`{` + good:          "header is not valid JSON",
		`{` + good + `} {}`: "header is not valid JSON",
		`{}`:                `header has no "kind":"header"`,
		`{"v":4,"kind":"entry","id":"s","storageVersion":1}`:    `header has no "kind":"header"`,
		`{"type":"session","version":3,"id":"s"}`:               `header has no "kind":"header"`,
		`{"v":3,"kind":"header","id":"s","storageVersion":1}`:   "header has format 3, not 4",
		`{"v":4,"kind":"header","storageVersion":1}`:            "header has no id",
		`{"v":4,"kind":"header","id":"s"}`:                      "header has no storageVersion",
		`{"v":4,"kind":"header","id":"s","storageVersion":0}`:   "header has no storageVersion",
		`{"v":4.5,"kind":"header","id":"s","storageVersion":1}`: "header field v is no integer",
		`{` + good + `,"id":7}`:                                 "header field id is no string",
		`{` + good + `,"cwd":"` + "\x94" + `"}`:                 "header field cwd is not UTF-8",
		`{` + good + `,"createdAt":"1"}`:                        "header field createdAt is no integer",
		`{` + good + `,"nextSeq":-1}`:                           "header has a negative generation or nextSeq",
		`{` + good + `,"nextSeq":99999999999999999999}`:         "header field nextSeq is no integer",
	} {
		h, err := store.ParseHeader([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %+v, %v; want %s", text, h, err, want)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add([]byte(`{"v":4,"kind":"header","id":"s","storageVersion":1,"createdAt":2,"cwd":"/","spawn":{"a": 1},"x":[ ]}`))
	f.Add([]byte(`{"v":4,"kind":"header","id":"\ud800","storageVersion":1,"nextSeq":9,"generation":2,"source":null}`))
	f.Add([]byte(`{"v":4,"kind":"header","id":"` + "\x94" + `","storageVersion":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := store.ParseHeader(text)
		if err != nil {
			return
		}
		line, err := h.AppendJSON(nil)
		if err != nil {
			t.Fatalf("write what was read: %v", err)
		}
		if bytes.ContainsAny(line, "\n") {
			t.Fatalf("the header is more than one line: %q", line)
		}
		back, err := store.ParseHeader(line)
		if err != nil {
			t.Fatalf("read what was written: %v", err)
		}
		again, err := back.AppendJSON(nil)
		if err != nil || !bytes.Equal(line, again) {
			t.Errorf("written as %q, then as %q, %v", line, again, err)
		}
		if !json.Valid(h.Metadata()) {
			t.Errorf("metadata %q", h.Metadata())
		}
	})
}
