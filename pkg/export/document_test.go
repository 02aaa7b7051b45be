package export_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/export"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

func document(t testing.TB, r store.Reader, o export.Options, form func(*bytes.Buffer) export.Document) string {
	t.Helper()
	var out bytes.Buffer
	if err := open(t, r, o).Document(t.Context(), form(&out)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func asHTML(out *bytes.Buffer) export.Document     { return export.HTML(out) }
func asMarkdown(out *bytes.Buffer) export.Document { return export.Markdown(out) }

// brackets are what is left of a document when only these matter.
func brackets(text string, parts ...string) string {
	var quoted []string
	for _, p := range parts {
		quoted = append(quoted, regexp.QuoteMeta(p))
	}
	return strings.Join(regexp.MustCompile(strings.Join(quoted, "|")).FindAllString(text, -1), " ")
}

// The whole tree: what leaves the path stands before the path goes on, one branch
// inside the other.
func TestDocumentTree(t *testing.T) {
	tree := func() *session {
		return (&session{}).
			user("1", "", "m1").user("2", "1", "m2").user("3", "2", "m3").user("4", "2", "m4").user("5", "4", "m5").
			user("6", "1", "m6").user("7", "6", "m7").user("8", "6", "m8").user("9", "", "m9")
	}
	for _, tt := range []struct{ leaf, want string }{
		{"8", "[ m9 ] m1 [ m2 [ m3 ] m4 m5 ] m6 [ m7 ] m8"},
		{"5", "[ m9 ] m1 [ m6 [ m7 ] m8 ] m2 [ m3 ] m4 m5"},
		{"2", "[ m9 ] m1 [ m6 [ m7 ] m8 ] m2 [ m3 ] [ m4 m5 ]"},
		{"9", "[ m1 [ m2 [ m3 ] m4 m5 ] m6 [ m7 ] m8 ] m9"},
		{"", "[ m1 [ m2 [ m3 ] m4 m5 ] m6 [ m7 ] m8 ] [ m9 ]"},
	} {
		r := tree().lane("main", tt.leaf).reader(t)
		short := strings.NewReplacer(`<details class="branch">`, "[", "</details>\n", "]", "*Another", "[", "*End", "]")
		parts := []string{"[", "]", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"}
		_, page, _ := strings.Cut(document(t, r, export.Options{AllBranches: true}, asHTML), "<main>")
		if got := brackets(short.Replace(page), parts...); got != tt.want {
			t.Errorf("leaf %q as HTML: got  %s\nwant %s", tt.leaf, got, tt.want)
		}
		if got := brackets(short.Replace(document(t, r, export.Options{AllBranches: true}, asMarkdown)), parts...); got != tt.want {
			t.Errorf("leaf %q as Markdown: got  %s\nwant %s", tt.leaf, got, tt.want)
		}
	}
}

// However deep branches nest, the page stays one that a browser can open.
func TestDocumentDeepBranches(t *testing.T) {
	s := (&session{}).user("r", "", "root")
	for i := range 200 { // each hangs beside the one before
		s.user(fmt.Sprint(i), map[bool]string{true: "r", false: fmt.Sprint(i - 1)}[i == 0], "deep")
		s.user(fmt.Sprint("x", i), fmt.Sprint(i), "leaf")
	}
	page := document(t, s.lane("main", "r").reader(t), export.Options{AllBranches: true}, asHTML)
	opened, closed := strings.Count(page, "<details"), strings.Count(page, "</details>")
	if opened != closed || strings.Count(page, "deep</div>") != 200 || strings.Count(page, "leaf</div>") != 200 {
		t.Errorf("%d opened, %d closed", opened, closed)
	}
}

const (
	png  = "\x89PNG\r\n\x1a\n............"
	gif  = "GIF89a.............."
	jpeg = "\xff\xd8\xff................."
	webp = "RIFF....WEBP........"
)

// hostile are texts that want to be more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `</pre></details></main><img src=x onerror=alert(1)>`, `"><iframe src=//evil>`,
	`![x](https://evil/x.png)`, `<img src="https://evil/x.png">`, `javascript:alert(1)`, `<!-- `, `]]>`, `&lt;b&gt;`,
	"\x1b[31mred", "\u202Eesrever", "a\u2066b", "nul\x00", "\u2028", "half \\ud83d",
}

// Nothing of a transcript becomes part of the page: neither markup nor anything
// that a browser would act on, wherever it stands.
func TestHTMLHostile(t *testing.T) {
	for _, text := range hostile {
		q := string(rawjson.Quote(text))
		s := (&session{}).
			message("1", "", `{"role":"user","content":`+q+`}`).
			message("2", "1", `{"role":"assistant","content":[{"type":"text","text":`+q+`},{"type":"thinking","thinking":`+q+`},`+
				`{"type":"toolCall","id":"c","name":`+q+`,"arguments":{"a":`+q+`}},{"type":`+q+`,"x":`+q+`}],"provider":`+q+`,"model":`+q+`,"stopReason":"error","errorMessage":`+q+`}`).
			message("3", "2", `{"role":"toolResult","toolCallId":"c","toolName":`+q+`,"content":[{"type":"text","text":`+q+`},{"type":"image","data":`+q+`,"mimeType":`+q+`}],"isError":true}`).
			message("4", "3", `{"role":`+q+`,"content":`+q+`}`).
			message("5", "4", `{"role":"custom","customType":`+q+`,"content":`+q+`}`).
			message("6", "5", `{"role":"bashExecution","command":`+q+`,"output":`+q+`}`).
			entry("7", "6", store.TypeCustom, text, `{"data":`+q+`}`).
			entry("8", "7", store.TypeCompaction, "", `{"summary":`+q+`,"retainedTail":[]}`).
			entry("9", "8", store.TypeBranchSummary, "", `{"summary":`+q+`}`).
			entry("10", "9", store.EntryType(text), "", `{}`).
			set(store.SessionName().Set(text)).set(store.EntryLabel("1").Set(text)).
			lane("main", "10").lane(text, "1")
		page := document(t, s.reader(t), export.Options{AllBranches: true}, asHTML)
		if i := strings.IndexFunc(page, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r == 0x202E || r == 0x2066 || r == 0x2028
		}); i >= 0 {
			t.Errorf("%q: the page has %q", text, page[i:min(i+20, len(page))])
		}
		plain := regexp.MustCompile(`</?(article|h2|h1|time|div|details|summary|code|pre|p|b|i|main|header)( class="[a-z ]+")?( dir="auto")?>`).
			ReplaceAllString(page[strings.Index(page, "<main>"):], "")
		plain = strings.TrimSuffix(plain, "\n</body>\n</html>\n")
		if i := strings.IndexAny(plain, `<>"'`); i >= 0 {
			t.Errorf("%q: not escaped: %q", text, plain[max(0, i-20):min(i+40, len(plain))])
		}
	}
}

// Images are shown by what they are, not by what they are called.
func TestHTMLImages(t *testing.T) {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct{ name, data, mime, want string }{
		{"png", encode(png), "image/png", `<img alt="image" src="data:image/png;base64,` + encode(png) + `">`},
		{"gif by another name", encode(gif), "text/html", `src="data:image/gif;base64,`},
		{"jpeg", encode(jpeg), "", `src="data:image/jpeg;base64,`},
		{"webp", encode(webp), "image/webp", `src="data:image/webp;base64,`},
		{"svg", encode(`<svg onload="alert(1)">`), "image/svg+xml", "image image/svg+xml, "},
		{"html that says it is png", encode("<html>"), "image/png", "image image/png, "},
		{"remote", "https://evil/x.png", "image/png", "image image/png, "},
		{"out of the attribute", encode(png) + `" onerror="x`, "image/png", "image image/png, "},
		{"out of the attribute, late", encode(png+strings.Repeat(".", 40)) + `" onerror="x`, "image/png", "image image/png, "},
		{"padding inside", encode(png)[:8] + "==" + encode(png)[8:], "image/png", "image image/png, "},
		{"nothing", "", "image/png", "image image/png, 0 bytes"},
	} {
		for _, m := range []string{
			`{"role":"user","content":[{"type":"image","data":%s,"mimeType":%s}]}`,
			`{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{"type":"image","data":%s,"mimeType":%s}],"isError":false}`,
		} {
			var out bytes.Buffer
			d := export.HTML(&out)
			d.Message(message.Message(fmt.Sprintf(m, rawjson.Quote(tt.data), rawjson.Quote(tt.mime))), 0)
			if err := d.End(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), tt.want) || strings.Count(out.String(), "<img") != strings.Count(tt.want, "data:image") {
				t.Errorf("%s: got %s", tt.name, out.String()[strings.Index(out.String(), "<main>"):])
			}
		}
	}
}

// The page forbids itself to load anything, and holds no script.
func TestHTMLPolicy(t *testing.T) {
	page := document(t, (&session{}).user("1", "", "hi").lane("main", "1").reader(t), export.Options{}, asHTML)
	for _, want := range []string{
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">`,
		`<meta name="viewport" content="width=device-width, initial-scale=1">`, `<!DOCTYPE html>`, `<title>Session session-1</title>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, not := range []string{"<script", "http://", "https://", "href=", "url("} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
}
