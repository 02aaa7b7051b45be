package v3import

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type readCase struct {
	name string
	text string
	o    Options
	want outcome
}

func runRead(t *testing.T, cases []readCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			got := readText(t, c.text, c.o)
			got.Tree = short(got.Tree)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func join(parts ...string) string { return strings.Join(parts, "") }

func TestFraming(t *testing.T) {
	a, b := user("a", ""), user("b", "a")
	none := outcome{Failure: "corrupt 1"}
	ab := "2<- user a\n3<2 user b\nleaf 3"
	runRead(t, []readCase{
		{"empty file", "", Options{}, none},
		{"only newlines", "\n\n\r\n", Options{}, none},
		{"no header", a + b, Options{}, none},
		{"header not first", a + v3, Options{}, none},
		{"header id missing", `{"type":"session","version":3}` + "\n", Options{}, none},
		{"header id a number", `{"type":"session","version":3,"id":7}` + "\n", Options{}, none},
		{"header id empty", `{"type":"session","version":3,"id":""}` + "\n", Options{}, none},
		{"format 4", `{"v":4,"kind":"header","id":"s","storageVersion":1}` + "\n", Options{}, none},
		{"array in front", "[]\n" + v3, Options{}, none},
		{"number in front", "42\n" + v3, Options{}, none},
		{"torn header", v3[:40], Options{}, none},
		{"utf-16 little endian", "\xff\xfe{\x00\"\x00", Options{}, none},
		{"utf-16 big endian without mark", "\x00{\x00\"\x00t", Options{}, none},
		{"carriage returns only", strings.ReplaceAll(join(v3, a, b), "\n", "\r"), Options{}, none},
		{"garbage in front", "hello\n\nwhat {\n" + v3 + a, Options{}, outcome{"5<- user a\nleaf 5", "1 garbage_before_header", ""}},
		{"null in front", "null\n" + v3, Options{}, outcome{"leaf -", "1 garbage_before_header", ""}},
		{"blank lines in front", "\n \n" + v3 + a, Options{}, outcome{"4<- user a\nleaf 4", "", ""}},
		{"header only", v3, Options{}, outcome{"leaf -", "", ""}},
		{"header only without a newline", strings.TrimSuffix(v3, "\n"), Options{}, outcome{"leaf -", "", ""}},
		{"blank lines", join(v3, a, "\n \t\n", b, "\n"), Options{}, outcome{"2<- user a\n5<2 user b\nleaf 5", "", ""}},
		{"carriage returns before newlines", strings.ReplaceAll(join(v3, a, b), "\n", "\r\n"), Options{}, outcome{ab, "", ""}},
		{"byte order mark", "\xef\xbb\xbf" + join(v3, a, b), Options{}, outcome{ab, "1 byte_order_mark", ""}},
		{"last line complete without a newline", strings.TrimSuffix(join(v3, a, b), "\n"), Options{}, outcome{ab, "", ""}},
		{"torn last line", join(v3, a, b[:20]), Options{}, outcome{"2<- user a\nleaf 2", "3 torn_line", ""}},
		{"torn last line of one number", join(v3, a, "42"), Options{}, outcome{"2<- user a\nleaf 2", "3 torn_line", ""}},
		{"malformed last line with a newline", join(v3, a, b[:20], "\n"), Options{}, outcome{Failure: "corrupt 3"}},
		{"malformed line", join(v3, a, "oops\n", b), Options{}, outcome{Failure: "corrupt 3"}},
		{"array line", join(v3, a, "[]\n", b), Options{}, outcome{Failure: "corrupt 3"}},
		{"string line", join(v3, a, "\"x\"\n", b), Options{}, outcome{Failure: "corrupt 3"}},
		{"null line", join(v3, a, "null\n", b), Options{}, outcome{"2<- user a\n4<2 user b\nleaf 4", "3 null_line", ""}},
		{"glued records", join(v3, strings.TrimSuffix(a, "\n"), b), Options{}, outcome{"2<- user a\n2b<2 user b\nleaf 2b", "2+122 glued_line", ""}},
		{"glued with a blank", join(v3, strings.TrimSuffix(a, "\n"), " ", b), Options{}, outcome{"2<- user a\n2b<2 user b\nleaf 2b", "2+123 glued_line", ""}},
		{"glued header", strings.TrimSuffix(v3, "\n") + a, Options{}, outcome{"1<- user a\nleaf 1", "1+89 glued_line", ""}},
		{"glued with garbage", join(v3, strings.TrimSuffix(a, "\n"), "oops\n", b), Options{}, outcome{Failure: "corrupt 2+122"}},
		{"glued with a torn record at the end", join(v3, strings.TrimSuffix(a, "\n"), b[:9]), Options{}, outcome{"2<- user a\nleaf 2", "2+122 torn_line", ""}},
		{"nul bytes between lines", join(v3, a, "\x00\x00\x00\n", b), Options{}, outcome{"2<- user a\n4<2 user b\nleaf 4", "3 nul_bytes", ""}},
		{"nul bytes in front of a record", join(v3, a, "\x00\x00", b), Options{}, outcome{ab, "3 nul_bytes", ""}},
		{"nul bytes at the end", join(v3, a, b, "\x00\x00"), Options{}, outcome{ab, "4 nul_bytes", ""}},
		{"nul byte in a string", join(v3, a, strings.Replace(b, `"b"}`, "\"b\x00\"}", 1), user("c", "b")), Options{}, outcome{Failure: "corrupt 3"}},
		{"two headers", join(v3, a, v3, b), Options{}, outcome{"2<- user a\n4<2 user b\nleaf 4", "3 second_header", ""}},
		{"the whole prefix twice", join(v3, a, b) + join(v3, a, b), Options{}, outcome{ab, strings.Join([]string{
			"4 second_header", "5 duplicate_record", "6 duplicate_record"}, "\n"), ""}},
	})
}
