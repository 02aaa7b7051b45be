package v3import

import (
	"strings"
	"testing"
)

func TestTree(t *testing.T) {
	a, b, c := user("a", ""), user("b", "a"), user("c", "b")
	model := func(id, parent string) string { return rec("model_change", id, parent, `"provider":"p","modelId":"m"`) }
	noID := func(parent, text string) string {
		return `{"type":"message"` + parent + second + `,"message":{"role":"user","content":"` + text + `"}}` + "\n"
	}
	leaf := func(id, parent, target string) string { return rec("leaf", id, parent, `"targetId":`+target) }
	runRead(t, []readCase{
		{"branches", join(v3, a, b, user("d", "a"), user("e", "b")), Options{}, outcome{"2<- user a\n3<2 user b\n4<2 user d\n5<3 user e\nleaf 5", "", ""}},
		{"several roots", join(v3, a, user("d", ""), user("e", "d")), Options{}, outcome{"2<- user a\n3<- user d\n4<3 user e\nleaf 4", "", ""}},
		{"parent later in the file", join(v3, c, b, a), Options{}, outcome{"4<- user a\n3<4 user b\n2<3 user c\nleaf 4", "", ""}},
		{"children of what left are lifted over runs", join(v3, model("m", ""), rec("thinking_level_change", "n", "m", `"thinkingLevel":"high"`), user("a", "n"), model("o", "a"), rec("active_tools_change", "p", "o", `"activeToolNames":[]`), user("b", "p"), user("c", "o")), Options{},
			outcome{"4<- user a\n7<4 user b\n8<4 user c\nleaf 8", "", ""}},
		{"leaf through what left", join(v3, a, model("m", "a"), model("n", "m")), Options{}, outcome{"2<- user a\nleaf 2", "", ""}},
		{"leaf in front of everything", join(v3, a, model("m", "")), Options{}, outcome{"2<- user a\nleaf -", "", ""}},
		{"parent is the session", join(v3, user("a", "s"), user("b", "s")), Options{}, outcome{"2<- user a\n3<- user b\nleaf 3", "2 parent_is_session", ""}},
		{"a record has the session's id", join(v3, user("s", ""), user("b", "s")), Options{}, outcome{"2<- user s\n3<2 user b\nleaf 3", "", ""}},
		{"missing parent", join(v3, a, user("b", "x"), c), Options{}, outcome{"2<- user a\n3<- user b\n4<3 user c\nleaf 4", "3 missing_parent", ""}},
		{"parent blank", join(v3, a, strings.Replace(user("b", ""), "null", `""`, 1)), Options{}, outcome{"2<- user a\n3<- user b\nleaf 3", "3 empty_parent", ""}},
		{"parent absent", join(v3, strings.Replace(a, `"parentId":null,`, "", 1), strings.Replace(user("b", ""), `"parentId":null,`, "", 1)), Options{},
			outcome{"2<- user a\n3<- user b\nleaf 3", "3 missing_parent", ""}},
		{"id missing, parent given", join(v3, a, b, noID(`,"parentId":"a"`, "x")), Options{}, outcome{"2<- user a\n3<2 user b\n4<2 user x\nleaf 4", "4 missing_id", ""}},
		{"id missing, parent null", join(v3, a, noID(`,"parentId":null`, "x")), Options{}, outcome{"2<- user a\n3<- user x\nleaf 3", "3 missing_id", ""}},
		{"id and parent missing", join(v3, a, b, noID("", "x"), c), Options{}, outcome{"2<- user a\n3<2 user b\n4<3 user x\n5<3 user c\nleaf 5", "4 missing_id", ""}},
		{"id blank", join(v3, a, noID(`,"id":""`, "x")), Options{}, outcome{"2<- user a\n3<2 user x\nleaf 3", "3 missing_id", ""}},
		{"no ids at all", join(v3, noID("", "x"), noID("", "y"), noID("", "z")), Options{}, outcome{"2<- user x\n3<2 user y\n4<3 user z\nleaf 4", "2 missing_id", ""}},
		{"ids are numbers", join(v3, strings.Replace(a, `"a"`, "5", 1), strings.Replace(b, `"a"`, "5", 1)), Options{}, outcome{"2<- user a\n3<2 user b\nleaf 3", "2 odd_id\n3 odd_id", ""}},
		{"id twice in a record", join(v3, strings.Replace(a, `"id":"a"`, `"id":"z","id":"a"`, 1), b), Options{}, outcome{"2<- user a\n3<2 user b\nleaf 3", "2 duplicate_key", ""}},
		{"escaped keys and ids", join(v3, strings.Replace(a, `"id":"a"`, `"\u0069d":"\u0061"`, 1), b), Options{}, outcome{"2<- user a\n3<2 user b\nleaf 3", "", ""}},
		{"odd names of ids", join(v3, user("__proto__", ""), user("b", "__proto__")), Options{}, outcome{"2<- user __proto__\n3<2 user b\nleaf 3", "", ""}},
		{"identical copy", join(v3, a, b, a, c), Options{}, outcome{"2<- user a\n3<2 user b\n5<3 user c\nleaf 5", "4 duplicate_record", ""}},
		{"identical copy of the last record", join(v3, a, b, b), Options{}, outcome{"2<- user a\n3<2 user b\nleaf 3", "4 duplicate_record", ""}},
		{"id used again", join(v3, a, b, user("a", "b")), Options{}, outcome{Failure: "corrupt 4"}},
		{"self parent", join(v3, a, user("x", "x")), Options{}, outcome{Failure: "corrupt 3"}},
		{"cycle of two", join(v3, a, user("x", "y"), user("y", "x")), Options{}, outcome{Failure: "corrupt 3"}},
		{"cycle of records that leave", join(v3, a, model("x", "y"), model("y", "x")), Options{}, outcome{Failure: "corrupt 3"}},
		{"cycle under salvage", join(v3, a, user("x", "x")), Options{Salvage: true}, outcome{Failure: "corrupt 3"}},
		{"leaf record", join(v3, a, b, c, leaf("l", "c", `"b"`)), Options{}, outcome{"2<- user a\n3<2 user b\n4<3 user c\nleaf 3", "", ""}},
		{"leaf record to the start", join(v3, a, b, leaf("l", "b", "null")), Options{}, outcome{"2<- user a\n3<2 user b\nleaf -", "", ""}},
		{"leaf record to what left", join(v3, a, model("m", "a"), b, leaf("l", "b", `"m"`)), Options{}, outcome{"2<- user a\n4<2 user b\nleaf 2", "", ""}},
		{"leaf record with a missing target", join(v3, a, b, leaf("l", "b", `"x"`)), Options{}, outcome{"2<- user a\n3<2 user b\nleaf 3", "4 leaf_target", ""}},
		{"leaf record and then a record", join(v3, a, b, leaf("l", "b", `"a"`), user("d", "a")), Options{}, outcome{"2<- user a\n3<2 user b\n5<2 user d\nleaf 5", "", ""}},
		{"child of a leaf record", join(v3, a, b, leaf("l", "a", `"b"`), user("d", "l")), Options{}, outcome{"2<- user a\n3<2 user b\n5<2 user d\nleaf 5", "", ""}},
		{"usage record last", join(v3, a, rec("usage", "u", "a", `"kind":"x","usage":{"input":1}`)), Options{}, outcome{"2<- user a\nleaf 2", "", ""}},
	})
}

func TestSalvage(t *testing.T) {
	a, b, c := user("a", ""), user("b", "a"), user("c", "b")
	s := Options{Salvage: true}
	runRead(t, []readCase{
		{"malformed line, its id readable", join(v3, a, b[:70], "\n", c), s, outcome{"2<- user a\n4<2 user c\nleaf 4", "3 malformed_line", ""}},
		{"malformed line, its id lost", join(v3, a, "oops\n", c), s, outcome{"2<- user a\n4<2 user c\nleaf 4", "3 malformed_line\n4 missing_parent", ""}},
		{"missing parent in front of the malformed line", join(v3, a, user("x", "y"), "oops\n"), s, outcome{"2<- user a\n3<- user x\nleaf 3", "3 missing_parent\n4 malformed_line", ""}},
		{"number line", join(v3, a, "42\n", b), s, outcome{"2<- user a\n4<2 user b\nleaf 4", "3 malformed_line", ""}},
		{"glued with garbage", join(v3, strings.TrimSuffix(a, "\n"), "oops\n", b), s, outcome{"2<- user a\n3<2 user b\nleaf 3", "2+122 malformed_line", ""}},
		{"nul byte in a string", join(v3, a, strings.Replace(b, `"b"}`, "\"b\x00\"}", 1), c), s,
			outcome{"2<- user a\n3<2 custom/pi.v3.quarantine {\"data\":{\"line\":3,\"raw\":\"{\\\"type\\\":\\\"message\\\",\\\"id\\\":\\\"b\\\",\\\"parentId\\\":\\\"a\\\",\\\"timestamp\\\":\\\"2026-01-01T00:00:01.000Z\\\",\\\"message\\\":{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"b\\u0000\\\"}}\"}}\n4<3 user c\nleaf 4", "3 malformed_line", ""}},
		{"id used again", join(v3, user("a", ""), user("b", "a"), rec("message", "b", "a", `"message":{"role":"user","content":"B"}`), user("c", "b")), s,
			outcome{"2<- user a\n3<2 user b\n4<2 user B\n5<4 user c\nleaf 5", "4 duplicate_id", ""}},
		{"id used again, child between", join(v3, a, b, user("c", "b"), rec("message", "b", "c", `"message":{"role":"user","content":"B"}`)), s,
			outcome{"2<- user a\n3<2 user b\n4<3 user c\n5<4 user B\nleaf 5", "5 duplicate_id", ""}},
		{"still no session", "[]\n", s, outcome{Failure: "corrupt 1"}},
		{"version 1", join(v1, flatUser("a"), "oops\n", flatUser("b")), s, outcome{"2<- user a\n4<2 user b\nleaf 4", "3 malformed_line", ""}},
	})
}

func TestVersions(t *testing.T) {
	a, b := user("a", ""), user("b", "a")
	header := func(version string) string { return strings.Replace(v3, `"version":3`, `"version":`+version, 1) }
	ab := "2<- user a\n3<2 user b\nleaf 3"
	hook := func(typ string) string { return strings.Replace(a, "user", "hookMessage", 1) + typ }
	runRead(t, []readCase{
		{"version 4", join(header("4"), a), Options{}, outcome{Failure: "newer_version 1"}},
		{"version 99", join(header("99"), a), Options{}, outcome{Failure: "newer_version 1"}},
		{"version 2.5", join(header("2.5"), a), Options{}, outcome{Failure: "newer_version 1"}},
		{"version true", join(header("true"), a), Options{}, outcome{Failure: "newer_version 1"}},
		{"version text 4", join(header(`"4"`), a), Options{}, outcome{Failure: "newer_version 1"}},
		{"version text 3", join(header(`"3"`), a, b), Options{}, outcome{ab, "1 version_text", ""}},
		{"version 3.0", join(header("3.0"), a, b), Options{}, outcome{ab, "", ""}},
		{"version null, ids form a tree", join(header("null"), a, b, user("c", "a")), Options{}, outcome{"2<- user a\n3<2 user b\n4<2 user c\nleaf 4", "1 version_missing", ""}},
		{"version 0, ids form a tree", join(header("0"), a, b), Options{}, outcome{ab, "1 version_missing", ""}},
		{"version 1, ids form a tree", join(header("1"), a, b), Options{}, outcome{ab, "1 version_missing", ""}},
		{"no version, ids form a tree", join(v1, a, b, a), Options{}, outcome{"2<- user a\n3<2 user b\nleaf 2", "1 version_missing\n4 duplicate_record", ""}},
		{"no version, one record with an id", join(v1, a), Options{}, outcome{"2<- user a\nleaf 2", "1 version_missing", ""}},
		{"no version, a parent is missing", join(v1, a, user("b", "x")), Options{}, outcome{ab, "1 ids_ignored", ""}},
		{"no version, an id used twice", join(v1, a, user("c", "a"), rec("message", "a", "c", `"message":{"role":"user","content":"A"}`)), Options{}, outcome{"2<- user a\n3<2 user c\n4<3 user A\nleaf 4", "1 ids_ignored", ""}},
		{"no version, a cycle", join(v1, user("a", "b"), user("b", "a")), Options{}, outcome{ab, "1 ids_ignored", ""}},
		{"no version, all roots", join(v1, a, user("b", "")), Options{}, outcome{ab, "1 ids_ignored", ""}},
		{"no version, one record without an id", join(v1, a, b, flatUser("c")), Options{}, outcome{"2<- user a\n3<2 user b\n4<3 user c\nleaf 4", "1 ids_ignored", ""}},
		{"version 1 is linear", join(v1, flatUser("a"), flat("thinking_level_change", `"thinkingLevel":"off"`), flatUser("b")), Options{}, outcome{"2<- user a\n4<2 user b\nleaf 4", "", ""}},
		{"version 1 events", join(v1, flatUser("a"), flat("event", `"event":{}`), flat("event", `"event":{}`)), Options{},
			outcome{"2<- user a\n3<2 custom/pi.v3.event {\"data\":{\"type\":\"event\",\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"event\":{}}}\n4<3 custom/pi.v3.event {\"data\":{\"type\":\"event\",\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"event\":{}}}\nleaf 4", "3 unknown_type", ""}},
		{"version 2 hook message", join(v2, hook("")), Options{}, outcome{"2<- message {\"message\":{\"role\":\"custom\",\"content\":\"a\"}}\nleaf 2", "", ""}},
		{"version 3 hook message", join(v3, hook("")), Options{}, outcome{"2<- message {\"message\":{\"role\":\"hookMessage\",\"content\":\"a\"}}\nleaf 2", "2 unknown_role", ""}},
	})
}
