package v3import

import (
	"strings"
	"testing"
)

// compaction writes one; kept is its first kept id, "" for none.
func compaction(id, parent, kept string) string {
	first := ""
	if kept != "" {
		first = `,"firstKeptEntryId":"` + kept + `"`
	}
	return rec("compaction", id, parent, `"summary":"S`+id+`"`+first+`,"tokensBefore":9`)
}

// kept is the compaction entry with the questions of a tail.
func kept(id string, texts ...string) string {
	var tail []string
	for _, s := range texts {
		tail = append(tail, `{"role":"user","content":"`+s+`"}`)
	}
	return `compaction {"summary":"S` + id + `","retainedTail":[` + strings.Join(tail, ",") + `],"tokensBefore":9,"fromHook":false}`
}

// TestReferenceChain is the tree of bugs.md B29: kept ranges across records that
// leave the tree and across an older compaction.
func TestReferenceChain(t *testing.T) {
	chain := join(v3,
		user("m1", ""), // 2
		rec("label", "l1", "m1", `"targetId":"m1","label":"first"`),     // 3
		rec("model_change", "mc", "l1", `"provider":"p","modelId":"m"`), // 4
		user("m2", "mc"), // 5
		rec("thinking_level_change", "tl", "m2", `"thinkingLevel":"high"`), // 6
		user("m3", "tl"), // 7
		rec("label", "l2", "m3", `"targetId":"mc","label":"model"`),          // 8
		rec("session_info", "i1", "l2", `"name":"old"`),                      // 9
		rec("session_info", "i2", "i1", `"name":"new"`),                      // 10
		compaction("C1", "i2", "m2"),                                         // 11
		user("m4", "C1"),                                                     // 12
		user("m5", "m4"),                                                     // 13
		compaction("C2", "m5", "m3"),                                         // 14
		user("m6", "C2"),                                                     // 15
		rec("active_tools_change", "at", "m6", `"activeToolNames":["bash"]`), // 16
	)
	want := strings.Join([]string{
		"2<- user m1", "5<2 user m2", "7<5 user m3", "11<7 " + kept("C1", "m2", "m3"),
		"12<11 user m4", "13<12 user m5", "14<13 " + kept("C2", "m3", "m4", "m5"), "15<14 user m6",
	}, "\n")
	end := "\nleaf 15\nname \"new\"\nlabel 2 \"model\""
	replaced := "3 label_replaced"
	branch := user("b1", "m2")
	runRead(t, []readCase{
		{"chain", chain, Options{}, outcome{want + end, replaced, ""}},
		{"second branch", join(chain, branch), Options{}, outcome{want + "\n17<5 user b1" + strings.Replace(end, "15", "17", 1), replaced, ""}},
		{"first kept on the other branch", join(chain, branch, compaction("C3", "at", "b1")), Options{},
			outcome{want + "\n17<5 user b1\n18<15 " + kept("C3") + strings.Replace(end, "15", "18", 1), replaced + "\n18 kept_range", ""}},
		{"first kept is a label", join(chain, compaction("C3", "at", "l2")), Options{},
			outcome{want + "\n17<15 " + kept("C3", "m4", "m5", "m6") + strings.Replace(end, "15", "17", 1), replaced, ""}},
	})
}

func TestB29KeptRanges(t *testing.T) {
	a, b := user("a", ""), user("b", "a")
	ab := "2<- user a\n3<2 user b\n"
	note := rec("custom_message", "n", "b", `"customType":"t","content":"c","display":true`)
	noteIn := `{"role":"custom","customType":"t","content":"c","display":true,"timestamp":1767225601000}`
	with := func(rest string) string { return rec("compaction", "C", "b", `"summary":"SC",`+rest) }
	got := func(payload string) string { return ab + "4<3 compaction " + payload + "\nleaf 4" }
	runRead(t, []readCase{
		{"missing", join(v3, a, b, compaction("C", "b", "zz")), Options{}, outcome{ab + "4<3 " + kept("C") + "\nleaf 4", "4 kept_range", ""}},
		{"itself", join(v3, a, b, compaction("C", "b", "C")), Options{}, outcome{ab + "4<3 " + kept("C") + "\nleaf 4", "", ""}},
		{"absent", join(v3, a, b, compaction("C", "b", "")), Options{}, outcome{ab + "4<3 " + kept("C") + "\nleaf 4", "4 kept_range", ""}},
		{"null", join(v3, a, b, with(`"firstKeptEntryId":null,"tokensBefore":9`)), Options{}, outcome{ab + "4<3 " + kept("C") + "\nleaf 4", "4 kept_range", ""}},
		{"later", join(v3, a, b, compaction("C", "b", "d"), user("d", "C")), Options{}, outcome{ab + "4<3 " + kept("C") + "\n5<4 user d\nleaf 5", "4 kept_range", ""}},
		{"off the branch", join(v3, a, b, user("d", "a"), compaction("C", "b", "d")), Options{}, outcome{ab + "4<2 user d\n5<3 " + kept("C") + "\nleaf 5", "5 kept_range", ""}},
		{"an older compaction", join(v3, a, b, compaction("C", "b", "a"), user("d", "C"), compaction("D", "d", "C")), Options{},
			outcome{ab + "4<3 " + kept("C", "a", "b") + "\n5<4 user d\n6<5 " + kept("D", "d") + "\nleaf 6", "", ""}},
		{"root that left", join(v3, rec("model_change", "m", "", `"provider":"p"`), user("a", "m"), b, compaction("C", "b", "m")), Options{},
			outcome{"3<- user a\n4<3 user b\n5<4 " + kept("C", "a", "b") + "\nleaf 5", "", ""}},
		{"compaction in front of its range", join(v3, compaction("C", "b", "a"), a, b), Options{}, outcome{"3<- user a\n4<3 user b\n2<4 " + kept("C", "a", "b") + "\nleaf 4", "", ""}},
		{"all that contributes", join(v3, a, b, note, rec("branch_summary", "s", "n", `"fromId":"a","summary":"sum"`),
			rec("branch_summary", "e", "s", `"fromId":"a","summary":""`), rec("custom", "x", "e", `"customType":"t"`), rec("future", "f", "x", `"a":1`),
			rec("message", "y", "f", `"message":{"role":"system","content":"p"}`),
			rec("message", "z", "y", `"message":{"role":"assistant","content":[],"stopReason":"error"}`), compaction("C", "z", "b")), Options{},
			outcome{ab + "4<3 message {\"message\":" + noteIn + "}\n5<4 branch_summary {\"fromId\":\"#2\",\"summary\":\"sum\",\"fromHook\":false}\n" +
				"6<5 branch_summary {\"fromId\":\"#2\",\"summary\":\"\",\"fromHook\":false}\n7<6 custom/t {}\n" +
				"8<7 custom/pi.v3.future {\"data\":{\"type\":\"future\",\"id\":\"f\",\"parentId\":\"x\"" + second + ",\"a\":1}}\n" +
				"9<8 message {\"message\":{\"role\":\"system\",\"content\":\"p\"}}\n10<9 message {\"message\":{\"role\":\"assistant\",\"content\":[],\"stopReason\":\"error\"}}\n" +
				"11<10 compaction {\"summary\":\"SC\",\"retainedTail\":[{\"role\":\"user\",\"content\":\"b\"}," + noteIn +
				",{\"role\":\"branchSummary\",\"summary\":\"sum\",\"fromId\":\"#2\",\"timestamp\":1767225601000},{\"role\":\"assistant\",\"content\":[],\"stopReason\":\"error\"}],\"tokensBefore\":9,\"fromHook\":false}\nleaf 11",
				"8 unknown_type", ""}},
		{"fields", join(v3, a, b, with(`"firstKeptEntryId":"b","tokensBefore":9,"details":{"readFiles": []},"usage":{"input":1},"fromHook":true,"more":[1, 2],"firstKeptEntryIndex":3`)), Options{},
			outcome{got(`{"summary":"SC","retainedTail":[{"role":"user","content":"b"}],"tokensBefore":9,"details":{"readFiles":[]},"usage":{"input":1},"fromHook":true,"more":[1,2]}`), "", ""}},
		{"no tokens", join(v3, a, b, with(`"firstKeptEntryId":"C"`)), Options{}, outcome{got(`{"summary":"SC","retainedTail":[],"tokensBefore":0,"fromHook":false}`), "", ""}},
		{"no summary", join(v3, a, b, rec("compaction", "C", "b", `"firstKeptEntryId":"C"`)), Options{}, outcome{got(`{"summary":"","retainedTail":[],"tokensBefore":0,"fromHook":false}`), "4 summary_missing", ""}},
		{"tail of its own wins", join(v3, a, b, with(`"retainedTail":[{"role":"user","content": "own"}],"firstKeptEntryId":"a","tokensBefore":9`)), Options{}, outcome{ab + "4<3 " + kept("C", "own") + "\nleaf 4", "", ""}},
		{"empty tail of its own wins", join(v3, a, b, with(`"retainedTail":[],"firstKeptEntryId":"a","tokensBefore":9`)), Options{}, outcome{ab + "4<3 " + kept("C") + "\nleaf 4", "", ""}},
		{"tail that is none", join(v3, a, b, with(`"retainedTail":["x"],"firstKeptEntryId":"b","tokensBefore":9`)), Options{}, outcome{ab + "4<3 " + kept("C", "b") + "\nleaf 4", "4 retained_tail", ""}},
		{"system message first", join(v3, a, b, with(`"systemMessage":{"role":"system","content":"p"},"firstKeptEntryId":"b","tokensBefore":9`)), Options{},
			outcome{got(`{"summary":"SC","retainedTail":[{"role":"system","content":"p"},{"role":"user","content":"b"}],"tokensBefore":9,"fromHook":false}`), "", ""}},
		{"white space in the range", join(v3, a, strings.ReplaceAll(b, `":`, "\" : "), compaction("C", "b", "a")), Options{}, outcome{ab + "4<3 " + kept("C", "a", "b") + "\nleaf 4", "", ""}},
		{"hook message of version 2", join(v2, a, strings.Replace(b, "user", "hookMessage", 1), compaction("C", "b", "a")), Options{},
			outcome{"2<- user a\n3<2 message {\"message\":{\"role\":\"custom\",\"content\":\"b\"}}\n4<3 " + strings.Replace(kept("C", "a", "b"), `"user","content":"b"`, `"custom","content":"b"`, 1) + "\nleaf 4", "", ""}},
	})
}

func TestContextEdits(t *testing.T) {
	a, b := user("a", ""), user("b", "a")
	edit := func(id, parent, target, replacement string) string {
		return rec("context_edit", id, parent, `"targetId":"`+target+`","replacement":`+replacement)
	}
	entry := func(line, target, replacement string) string {
		return line + ` custom/pi.context_edit {"data":{"targetId":"` + target + `","replacement":` + replacement + `}}` + "\n"
	}
	ab := "2<- user a\n3<2 user b\n"
	runRead(t, []readCase{
		{"replaced in a tail", join(v3, a, b, edit("e", "b", "b", `{"content":"new"}`), compaction("C", "e", "a")), Options{},
			outcome{ab + entry("4<3", "#3", `{"content":"new"}`) + "5<4 " + kept("C", "a", "new") + "\nleaf 5", "", ""}},
		{"left out of a tail", join(v3, a, b, edit("e", "b", "a", "null"), compaction("C", "e", "a")), Options{},
			outcome{ab + entry("4<3", "#2", "null") + "5<4 " + kept("C", "b") + "\nleaf 5", "", ""}},
		{"the latest edit wins", join(v3, a, b, edit("e", "b", "a", "null"), edit("f", "e", "a", `{"content":"x"}`), compaction("C", "f", "a")), Options{},
			outcome{ab + entry("4<3", "#2", "null") + entry("5<4", "#2", `{"content":"x"}`) + "6<5 " + kept("C", "x", "b") + "\nleaf 6", "", ""}},
		{"text for an answer", join(v3, a, rec("message", "b", "a", `"message":{"role":"assistant","content":[{"type":"text","text":"long"}]}`), edit("e", "b", "b", `{"content":"short"}`), compaction("C", "e", "b")), Options{},
			outcome{"2<- user a\n3<2 message {\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"long\"}]}}\n" + entry("4<3", "#3", `{"content":"short"}`) +
				"5<4 compaction {\"summary\":\"SC\",\"retainedTail\":[{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"short\"}]}],\"tokensBefore\":9,\"fromHook\":false}\nleaf 5", "", ""}},
		{"after the compaction that kept its target", join(v3, a, b, compaction("C", "b", "b"), edit("e", "C", "b", "null")), Options{},
			outcome{ab + "4<3 " + kept("C", "b") + "\n" + entry("5<4", "#3", "null") + "leaf 5", "5 edit_target", ""}},
		{"after a compaction that kept another", join(v3, a, b, compaction("C", "b", "b"), edit("e", "C", "a", "null")), Options{},
			outcome{ab + "4<3 " + kept("C", "b") + "\n" + entry("5<4", "#2", "null") + "leaf 5", "", ""}},
		{"of what left", join(v3, a, rec("label", "l", "a", `"targetId":"a"`), edit("e", "l", "l", "null")), Options{},
			outcome{"2<- user a\n4<2 custom/pi.context_edit {\"data\":{\"targetId\":null,\"replacement\":null}}\nleaf 4", "4 edit_target", ""}},
	})
}

// TestFirstKeptIndex counts records as the writer did: the header is 0, every
// line counts.
func TestFirstKeptIndex(t *testing.T) {
	a, b, c := flatUser("a"), flatUser("b"), flatUser("c")
	model := flat("model_change", `"provider":"p","modelId":"m"`)
	cut := func(index string) string {
		return flat("compaction", `"summary":"SC","firstKeptEntryIndex":`+index+`,"tokensBefore":9`)
	}
	tree := func(line string, texts ...string) string {
		return "2<- user a\n3<2 user b\n4<3 user c\n" + line + " " + kept("C", texts...) + "\nleaf " + strings.Split(line, "<")[0]
	}
	runRead(t, []readCase{
		{"first", join(v1, a, b, c, cut("1")), Options{}, outcome{tree("5<4", "a", "b", "c"), "", ""}},
		{"second", join(v1, a, b, c, cut("2")), Options{}, outcome{tree("5<4", "b", "c"), "", ""}},
		{"header", join(v1, a, b, c, cut("0")), Options{}, outcome{tree("5<4"), "5 kept_range", ""}},
		{"negative", join(v1, a, b, c, cut("-1")), Options{}, outcome{tree("5<4"), "5 kept_range", ""}},
		{"itself", join(v1, a, b, c, cut("4")), Options{}, outcome{tree("5<4"), "", ""}},
		{"ahead", join(v1, a, b, c, cut("5"), model), Options{}, outcome{tree("5<4"), "5 kept_range", ""}},
		{"out of range", join(v1, a, b, c, cut("99")), Options{}, outcome{tree("5<4"), "5 kept_range", ""}},
		{"text", join(v1, a, b, c, cut(`"2"`)), Options{}, outcome{tree("5<4"), "5 kept_range", ""}},
		{"fraction", join(v1, a, b, c, cut("1.5")), Options{}, outcome{tree("5<4"), "5 kept_range", ""}},
		{"a record that leaves", join(v1, model, a, b, cut("1")), Options{}, outcome{"3<- user a\n4<3 user b\n5<4 " + kept("C", "a", "b") + "\nleaf 5", "", ""}},
		{"blank lines do not count", join(v1, a, "\n\n", b, cut("2")), Options{}, outcome{"2<- user a\n5<2 user b\n6<5 " + kept("C", "b") + "\nleaf 6", "", ""}},
		{"a glued line counts twice", join(v1, strings.TrimSuffix(a, "\n"), b, c, cut("3")), Options{}, outcome{"2<- user a\n2b<2 user b\n3<2b user c\n4<3 " + kept("C", "c") + "\nleaf 4", "2+97 glued_line", ""}},
		{"a null line counts", join(v1, a, "null\n", b, cut("3")), Options{}, outcome{"2<- user a\n4<2 user b\n5<4 " + kept("C", "b") + "\nleaf 5", "3 null_line", ""}},
		{"a malformed line counts", join(v1, a, "oops\n", b, c, cut("3")), Options{Salvage: true}, outcome{"2<- user a\n4<2 user b\n5<4 user c\n6<5 " + kept("C", "b", "c") + "\nleaf 6", "3 malformed_line", ""}},
		{"an id in version 1", join(v1, a, b, flat("compaction", `"summary":"SC","firstKeptEntryId":"x","tokensBefore":9`)), Options{}, outcome{"2<- user a\n3<2 user b\n4<3 " + kept("C") + "\nleaf 4", "4 kept_range", ""}},
		{"an index in version 3", join(v3, user("a", ""), rec("compaction", "C", "a", `"summary":"SC","firstKeptEntryIndex":1,"tokensBefore":9`)), Options{}, outcome{"2<- user a\n3<2 " + kept("C") + "\nleaf 3", "3 kept_range", ""}},
		{"an index over ids that form a tree", join(v1, user("a", ""), user("b", "a"), rec("compaction", "C", "b", `"summary":"SC","firstKeptEntryIndex":2,"tokensBefore":9`)), Options{},
			outcome{"2<- user a\n3<2 user b\n4<3 " + kept("C", "b") + "\nleaf 4", "1 version_missing", ""}},
	})
}
