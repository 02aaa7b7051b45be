package repair_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/repair"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// laneFile is a session of two branches, ROOT-A1-A2 and ROOT-B1-B2, with the lanes main
// and side; values are its lanes' values, one a line, behind the entries.
func laneFile(t *testing.T, values ...string) string {
	t.Helper()
	const config = `{"model":{"provider":"scripted","modelId":"echo"},"thinkingLevel":"off","activeToolNames":[]}`
	lines := []string{
		`{"v":4,"kind":"header","id":"lanes","storageVersion":1,"createdAt":1,"generation":1,"nextSeq":20}`,
		`{"kind":"value","op":"set","seq":1,"namespace":"pi.lane.config","key":"main","value":` + config + `}`,
		`{"kind":"value","op":"set","seq":2,"namespace":"pi.lane.config","key":"side","value":` + config + `}`,
	}
	for i, e := range [][2]string{{"ROOT", ""}, {"A1", "ROOT"}, {"B1", "ROOT"}, {"B2", "B1"}, {"A2", "A1"}} {
		parent := "null"
		if e[1] != "" {
			parent = `"` + e[1] + `"`
		}
		lines = append(lines, fmt.Sprintf(`{"kind":"entry","seq":%d,"timestamp":5,"id":%q,"parentId":%s,"type":"message","message":{"role":"user","content":"x","timestamp":5}}`, 3+i, e[0], parent))
	}
	for i, v := range values {
		at, value, _ := strings.Cut(v, "=")
		namespace, key, _ := strings.Cut(at, "/")
		lines = append(lines, fmt.Sprintf(`{"kind":"value","op":"set","seq":%d,"namespace":%q,"key":%q,"value":%s}`, 8+i, namespace, key, value))
	}
	path := filepath.Join(t.TempDir(), "lanes.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A lane whose place is lost stands on the newest saved entry that no other lane
// reaches, main first, and the report says so.
func TestSalvageOfLostLeaves(t *testing.T) {
	set := func(id string) string {
		return "its leaf is lost, and no ancestor of it is known: the lane is set to " + id + ", the newest saved entry that it can stand on"
	}
	for name, c := range map[string]struct {
		values     []string
		main, side string
		changed    string
	}{
		"both":                   {nil, "A2", "B2", "lane main: " + set("A2") + "\nlane side: " + set("B2")},
		"main":                   {[]string{`pi.lane.leaf/side="A2"`}, "B2", "A2", "lane main: " + set("B2")},
		"side":                   {[]string{`pi.lane.leaf/main="B1"`}, "B1", "A2", "lane side: " + set("A2")},
		"main's entry":           {[]string{`pi.lane.leaf/main="gone"`, `pi.lane.leaf/side="B2"`}, "A2", "B2", "lane main: " + set("A2")},
		"none, before the first": {[]string{`pi.lane.leaf/main=null`, `pi.lane.leaf/side="B2"`}, "", "B2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "saved.jsonl")
			s, _ := salvage(t, jsonl.Driver{}, laneFile(t, c.values...), jsonl.Driver{}, out)
			got := map[string]string{"main": leafIn(t, out, "main"), "side": leafIn(t, out, "side")}
			if diff := cmp.Diff(map[string]string{"main": c.main, "side": c.side}, got); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.changed, leafChanges(s)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

func leafChanges(s repair.Salvaged) string {
	var told []string
	for _, c := range s.Changed {
		if c.Code == "lane_leaf" {
			told = append(told, c.Where+": "+c.Message)
		}
	}
	return strings.Join(told, "\n")
}

func leafIn(t *testing.T, path, lane string) string {
	t.Helper()
	r, err := jsonl.Driver{}.View(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	leaf, _, err := store.Get(t.Context(), r, store.LaneLeaf(lane))
	if err != nil {
		t.Fatal(err)
	}
	return string(leaf.Value)
}
