package v3import

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPayloads(t *testing.T) {
	a := user("a", "")
	one := func(typ, rest, want, warnings string) readCase {
		return readCase{want + " " + rest, join(v3, a, rec(typ, "x", "a", rest)), Options{}, outcome{"2<- user a\n3<2 " + want + "\nleaf 3", warnings, ""}}
	}
	cases := []readCase{
		// Bytes of payloads are kept; white space between tokens is not.
		one("message", `"message":{"role":"toolResult","toolCallId":"c","content":[],"details":{"n":12345678901234567890,"e":1.50E+3,"s":"\ud83d","u":"\u0041\u0000","d":1,"d":2}}`,
			`message {"message":{"role":"toolResult","toolCallId":"c","content":[],"details":{"n":12345678901234567890,"e":1.50E+3,"s":"\ud83d","u":"\u0041\u0000","d":1,"d":2}}}`, ""),
		one("message", `"message" : { "role" : "user" , "content" : [ { "type" : "text" , "text" : " a b " } ] }`,
			`message {"message":{"role":"user","content":[{"type":"text","text":" a b "}]}}`, ""),
		one("message", `"extra":{"a": 1},"message":{"role":"user","content":"x","more":[]},"last":null`,
			`message {"message":{"role":"user","content":"x","more":[]},"extra":{"a":1},"last":null}`, ""),
		one("message", `"message":{"role":"user","content":"x"},"seq":9,"kind":"k","customType":"c"`,
			`message {"message":{"role":"user","content":"x"},"pi.v3.seq":9,"pi.v3.kind":"k","pi.v3.customType":"c"}`, "3 renamed_field"),
		one("message", `"message":{"role":"user","content":"x"},"message":{"role":"user","content":"y"}`, `user y`, ""),
		one("message", `"message":{"role":"bashExecution","command":"ls","output":"","cancelled":false,"truncated":false}`,
			`message {"message":{"role":"bashExecution","command":"ls","output":"","cancelled":false,"truncated":false}}`, ""),
		one("message", `"message":{"role":"system","content":"x","sections":{"a":null}}`, `message {"message":{"role":"system","content":"x","sections":{"a":null}}}`, ""),
		one("message", `"message":{"role":"alien","content":"x"}`, `message {"message":{"role":"alien","content":"x"}}`, "3 unknown_role"),
		one("message", `"message":{"content":"x"}`, `message {"message":{"content":"x"}}`, "3 unknown_role"),
		one("message", `"message":{"role":"user"}`, `message {"message":{"role":"user"}}`, "3 content_missing"),
		one("message", `"message":{"role":"assistant","content":null}`, `message {"message":{"role":"assistant","content":null}}`, "3 content_missing"),
		one("message", `"note":1`, `custom/pi.v3.message {"data":{"type":"message","id":"x","parentId":"a"`+second+`,"note":1}}`, "3 message_missing"),
		one("message", `"message":null`, `custom/pi.v3.message {"data":{"type":"message","id":"x","parentId":"a"`+second+`,"message":null}}`, "3 message_missing"),
		one("message", `"message":{"role":"assistant","content":[],"stopReason":"pending"}`,
			`custom/pi.v3.message {"data":{"type":"message","id":"x","parentId":"a"`+second+`,"message":{"role":"assistant","content":[],"stopReason":"pending"}}}`, "3 message_pending"),
		one("custom_message", `"customType":"t","content":"c","display":true,"details":{"a":1},"more":2`,
			`message {"message":{"role":"custom","customType":"t","content":"c","display":true,"details":{"a":1},"timestamp":1767225601000},"more":2}`, ""),
		one("custom_message", `"customType":"t","content":[]`,
			`message {"message":{"role":"custom","customType":"t","content":[],"display":false,"timestamp":1767225601000}}`, ""),
		one("custom_message", `"customType":"t","display":false`,
			`message {"message":{"role":"custom","customType":"t","display":false,"timestamp":1767225601000}}`, "3 content_missing"),
		one("custom_message", `"customType":"t","content":"c","message":{"content":1}`,
			`message {"message":{"role":"custom","customType":"t","content":"c","display":false,"timestamp":1767225601000},"pi.v3.message":{"content":1}}`, ""),
		one("custom", `"customType":"t","data":null`, `custom/t {"data":null}`, ""),
		one("custom", `"customType":"t","data":[1, 2],"more":3`, `custom/t {"data":[1,2],"more":3}`, ""),
		one("custom", `"customType":"t"`, `custom/t {}`, ""),
		one("custom", `"data":1`, `custom/pi.v3.custom {"data":{"type":"custom","id":"x","parentId":"a"`+second+`,"data":1}}`, "3 custom_type"),
		one("future", `"secret":"\u00e9"`, `custom/pi.v3.future {"data":{"type":"future","id":"x","parentId":"a"`+second+`,"secret":"\u00e9"}}`, "3 unknown_type"),
		one("branch_summary", `"fromId":"a","summary":"s","details":{"x": 1},"usage":{"input":1},"fromHook":true,"more":1`,
			`branch_summary {"fromId":"#2","summary":"s","details":{"x":1},"usage":{"input":1},"fromHook":true,"more":1}`, ""),
		one("branch_summary", `"summary":"s","fromId":"root"`, `branch_summary {"fromId":null,"summary":"s","fromHook":false}`, "3 from_id"),
		one("branch_summary", `"summary":"s","fromId":null`, `branch_summary {"fromId":null,"summary":"s","fromHook":false}`, "3 from_id"),
		one("branch_summary", `"summary":"s"`, `branch_summary {"fromId":null,"summary":"s","fromHook":false}`, "3 from_id"),
		one("branch_summary", `"fromId":"zz","summary":"s"`, `branch_summary {"fromId":null,"summary":"s","fromHook":false}`, "3 from_id"),
		one("branch_summary", `"fromId":"a"`, `branch_summary {"fromId":"#2","summary":"","fromHook":false}`, "3 summary_missing"),
		one("context_edit", `"targetId":"a","replacement":{"content":"new"},"more":1`, `custom/pi.context_edit {"data":{"targetId":"#2","replacement":{"content":"new"},"more":1}}`, ""),
		one("context_edit", `"targetId":"zz","replacement":null`, `custom/pi.context_edit {"data":{"targetId":null,"replacement":null}}`, "3 edit_target"),
		{"no type", join(v3, a, strings.Replace(user("x", "a"), `"type":"message",`, "", 1)), Options{},
			outcome{"2<- user a\n3<2 custom/pi.v3.untyped {\"data\":{\"id\":\"x\",\"parentId\":\"a\"" + second + ",\"message\":{\"role\":\"user\",\"content\":\"x\"}}}\nleaf 3", "3 unknown_type", ""}},
		{"fromId of what left", join(v3, a, rec("label", "l", "a", `"targetId":"a"`), rec("branch_summary", "x", "a", `"fromId":"l","summary":"s"`)), Options{},
			outcome{"2<- user a\n4<2 branch_summary {\"fromId\":\"#2\",\"summary\":\"s\",\"fromHook\":false}\nleaf 4", "4 from_id", ""}},
		{"fromId of what left with nothing above", join(v3, rec("label", "l", "", `"targetId":"a"`), a, rec("branch_summary", "x", "a", `"fromId":"l","summary":"s"`)), Options{},
			outcome{"3<- user a\n4<3 branch_summary {\"fromId\":null,\"summary\":\"s\",\"fromHook\":false}\nleaf 4", "4 from_id", ""}},
		{"invalid utf-8", join(v3, user("a\xff\xfeb", "")), Options{}, outcome{"2<- user a\uFFFD\uFFFDb\nleaf 2", "2+25 invalid_utf8", ""}},
		{"line separators", join(v3, user("\u2028\u2029\u0085\u00a0🙂e\u0301", "")), Options{}, outcome{"2<- user \u2028\u2029\u0085\u00a0🙂e\u0301\nleaf 2", "", ""}},
	}
	runRead(t, cases)
}

func TestValues(t *testing.T) {
	a, b := user("a", ""), user("b", "a")
	label := func(id, parent, target, text string) string {
		return rec("label", id, parent, `"targetId":"`+target+`"`+text)
	}
	info := func(id, parent, name string) string { return rec("session_info", id, parent, name) }
	ab := "2<- user a\n3<2 user b\n"
	runRead(t, []readCase{
		{"label", join(v3, a, b, label("l", "b", "a", `,"label":"one"`)), Options{}, outcome{ab + "leaf 3\nlabel 2 \"one\"", "", ""}},
		{"label on another branch", join(v3, a, b, label("l", "a", "b", `,"label":" x "`)), Options{}, outcome{ab + "leaf 2\nlabel 3 \" x \"", "", ""}},
		{"label in front of its target", join(v3, label("l", "", "a", `,"label":"x"`), a), Options{}, outcome{"3<- user a\nleaf 3\nlabel 3 \"x\"", "", ""}},
		{"label cleared by absence", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "a", "")), Options{}, outcome{"2<- user a\nleaf 2", "", ""}},
		{"label cleared by emptiness", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "a", `,"label":""`)), Options{}, outcome{"2<- user a\nleaf 2", "", ""}},
		{"label of blanks", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "a", `,"label":" \ufeff\t"`)), Options{}, outcome{"2<- user a\nleaf 2", "4 label_blank", ""}},
		{"label replaced", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "a", `,"label":"y"`)), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"y\"", "3 label_replaced", ""}},
		{"label repeated", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "a", `,"label":"x"`)), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"x\"", "", ""}},
		{"label set again", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "a", ""), label("n", "m", "a", `,"label":"z"`)), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"z\"", "", ""}},
		{"label of what left", join(v3, a, label("l", "a", "a", ""), label("m", "l", "l", `,"label":"x"`)), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"x\"", "", ""}},
		{"two targets come down to one", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "l", `,"label":"y"`)), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"y\"", "3 label_replaced", ""}},
		{"clearing one of two targets", join(v3, a, label("l", "a", "a", `,"label":"x"`), label("m", "l", "l", "")), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"x\"", "", ""}},
		{"label without a kept target", join(v3, label("l", "", "l", `,"label":"x"`), a), Options{}, outcome{"3<- user a\nleaf 3", "2 label_target", ""}},
		{"label of a missing record", join(v3, a, label("l", "a", "zz", `,"label":"x"`)), Options{}, outcome{"2<- user a\nleaf 2", "3 label_target", ""}},
		{"label that is no text", join(v3, a, label("l", "a", "a", `,"label":5`)), Options{}, outcome{"2<- user a\nleaf 2", "3 label_text", ""}},
		{"label with a half character", join(v3, a, label("l", "a", "a", `,"label":"\ud83d"`)), Options{}, outcome{"2<- user a\nleaf 2\nlabel 2 \"\\ud83d\"", "", ""}},
		{"label in version 1", join(v1, flatUser("a"), flat("label", `"targetId":"a","label":"x"`)), Options{}, outcome{"2<- user a\nleaf 2", "3 label_target", ""}},
		{"name", join(v3, a, info("i", "a", `"name":"old"`), info("j", "i", `"name":" new "`)), Options{}, outcome{"2<- user a\nleaf 2\nname \"new\"", "", ""}},
		{"name on another branch", join(v3, a, b, info("i", "a", `"name":"x"`), user("c", "b")), Options{}, outcome{ab + "5<3 user c\nleaf 5\nname \"x\"", "", ""}},
		{"name cleared", join(v3, a, info("i", "a", `"name":"old"`), info("j", "i", `"name":""`)), Options{}, outcome{"2<- user a\nleaf 2", "", ""}},
		{"name cleared by absence", join(v3, a, info("i", "a", `"name":"old"`), info("j", "i", "")), Options{}, outcome{"2<- user a\nleaf 2", "", ""}},
		{"name of blanks", join(v3, a, info("i", "a", `"name":"old"`), info("j", "i", `"name":"  "`)), Options{}, outcome{"2<- user a\nleaf 2", "4 name_blank", ""}},
	})
}

func TestTimes(t *testing.T) {
	at := func(stamp string) string {
		return `{"type":"message","id":"a","parentId":null` + stamp + `,"message":{"role":"user","content":"a","timestamp":1700000000123}}` + "\n"
	}
	plain := func(stamp string) string {
		return `{"type":"message","id":"a","parentId":null` + stamp + `,"message":{"role":"user","content":"a"}}` + "\n"
	}
	const second = 1767225600000
	for _, c := range []struct {
		name, text string
		want       []int64 // created, then entries
		warnings   string
	}{
		{"milliseconds", join(v3, at(`,"timestamp":"2025-12-08T22:41:05.306Z"`)), []int64{second, 1765233665306}, ""},
		{"no milliseconds", join(v3, at(`,"timestamp":"2025-01-02T00:00:01Z"`)), []int64{second, 1735776001000}, ""},
		{"offset and more digits", join(v3, at(`,"timestamp":"2025-01-02T02:00:01.123456+02:00"`)), []int64{second, 1735776001123}, ""},
		{"a day", join(v3, at(`,"timestamp":"2025-01-02"`)), []int64{second, 1735776000000}, ""},
		{"backwards", join(v3, user("b", ""), at(`,"timestamp":"2020-01-01T00:00:00.000Z"`)), []int64{second, second + 1000, 1577836800000}, ""},
		{"number", join(v3, at(`,"timestamp":1735776001000`)), []int64{second, 1735776001000}, "2 bad_timestamp"},
		{"nonsense", join(v3, at(`,"timestamp":"yesterday"`)), []int64{second, 1700000000123}, "2 bad_timestamp"},
		{"no such day", join(v3, at(`,"timestamp":"2025-02-30T00:00:00.000Z"`)), []int64{second, 1700000000123}, "2 bad_timestamp"},
		{"before 1970", join(v3, at(`,"timestamp":"1969-12-31T23:59:59.000Z"`)), []int64{second, 1700000000123}, "2 bad_timestamp"},
		{"absent, no message time", join(v3, user("b", ""), plain("")), []int64{second, second + 1000, second + 1000}, "3 bad_timestamp"},
		{"absent in the first record", join(v3, plain("")), []int64{second, second}, "2 bad_timestamp"},
		{"header without a time", join(strings.Replace(v3, `"timestamp":"2026-01-01T00:00:00.000Z",`, "", 1), plain(""), user("b", "a")), []int64{second + 1000, second + 1000, second + 1000}, "1 header_time\n2 bad_timestamp"},
		{"no time anywhere", join(strings.Replace(v3, `"timestamp":"2026-01-01T00:00:00.000Z",`, "", 1), plain("")), []int64{42, 42}, "1 header_time\n2 bad_timestamp"},
		{"header without a folder", join(strings.Replace(v3, `,"cwd":"/w"`, "", 1)), []int64{second}, "1 header_cwd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Read(t.Context(), write(t, c.text), Options{Now: func() int64 { return 42 }})
			if err != nil {
				t.Fatal(err)
			}
			got := []int64{s.Header.CreatedAt}
			for _, e := range entriesOf(t, s) {
				got = append(got, e.Timestamp)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.warnings, describeWarnings(c.text, s.Report.Warnings)); diff != "" {
				t.Error(diff)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
