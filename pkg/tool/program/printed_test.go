package program

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// print is a program that prints text.
func print(text string) Config {
	c := shell("cat <<'END'\n" + text + "\nEND")
	c.JSON = true
	return c
}

func TestResultJSON(t *testing.T) {
	w := newWorld(t)
	failed := func(c Config) Config { c.Argv[2] += "\nexit 3"; return c }
	cases := []struct {
		name   string
		config Config
		want   outcome
	}{
		{"text", print(`{"content":"hello"}`), outcome{Text: "hello"}},
		{"blocks", print("{\n \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}],\n \"details\": {\"n\": 1.0}, \"isError\": true}"),
			outcome{Text: "ab", Details: `{"n":1.0}`, IsError: true}},
		{"nothing", print(`{"content":[],"details":null}`), outcome{}},
		{"no JSON", print("hello"), invalid(`it is not JSON: expected a value at byte 0; it begins with \"hello\"`)},
		{"empty", shellJSON("true"), invalid("it printed nothing")},
		{"failed", failed(print(`{"content":"hello"}`)), outcome{
			Text: "{\"content\":\"hello\"}\n[Exit code 3.]", Details: strings.Replace(fine, "0", "3", 1), IsError: true}},
		{"too long", shellJSON("head -c 5000000 /dev/zero"), invalid(`it is longer than 4 MiB; it begins with \"` + strings.Repeat(`\\u0000`, 200) + `\"`)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, w.call(t, c.config, `{}`)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func shellJSON(script string) Config {
	c := shell(script)
	c.JSON = true
	return c
}

func invalid(why string) outcome {
	return outcome{Text: "[Read the program's result: " + strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(why) + ".]", Details: fine, IsError: true}
}

func TestParseResult(t *testing.T) {
	good := []string{
		`{"content":[],"usage":{"input":1,"output":2,"cost":{"total":0.5}},"addedToolNames":["a"],"terminate":true}`,
		`{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"text","text":"\ud83d","extra":1}]}`,
	}
	for _, text := range good {
		r, err := parseResult([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(text, "terminate") && (!r.Terminate || r.Usage.Output != 2 || r.AddedToolNames[0] != "a") {
			t.Errorf("got %+v", r)
		}
		if strings.Contains(text, "extra") && string(r.Content[1].Raw) != `{"type":"text","text":"\ud83d","extra":1}` {
			t.Errorf("got %s", r.Content[1].Raw)
		}
	}
	bad := []struct{ text, want string }{
		{`[]`, "it is not a JSON object"},
		{`{}`, "content is missing"},
		{`{"content":null}`, "content is missing"},
		{`{"content":1}`, "content is not an array of blocks"},
		{`{"content":[{"type":"text"}]}`, "content[0].text is missing"},
		{`{"content":[{"type":"toolCall"}]}`, `content[0].type "toolCall" does not belong here`},
		{`{"content":[{"type":"image","data":"a","mimeType":"image/png"}]}`, "content[0].data is not base64"},
		{`{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`, "content[0].data is empty"},
		{`{"content":[{"type":"image","data":"aGk=","mimeType":"image/bmp"}]}`, "content[0].mimeType is not image/png, image/jpeg, image/gif or image/webp"},
		{`{"content":"a","is_error":true}`, `"is_error" is unknown; there are content, details, isError, usage, addedToolNames, terminate`},
		{`{"content":"a","content":"b"}`, "content is there twice"},
		{`{"content":"a","isError":1}`, "isError is not true or false"},
		{`{"content":"a","terminate":"yes"}`, "terminate is not true or false"},
		{`{"content":"a","details":[]}`, "details is not an object"},
		{`{"content":"a","usage":{"input":-1}}`, "usage has a negative count"},
		{`{"content":"a","usage":{"input":9223372036854775807}}`, "usage has a count above 1000000000000"},
		{`{"content":"a","usage":{"input":1,"cost":{"total":-0.5}}}`, "usage has a negative cost"},
		{`{"content":"a","usage":{"input":"1"}}`, `usage is no usage object: decode usage: "input" is not a number: "1"`},
		{`{"content":"a","addedToolNames":"b"}`, "addedToolNames is not a list of names"},
		{"{\"content\":\"\xff\"}", "invalid UTF-8 at byte 12"},
	}
	for _, c := range bad {
		if _, err := parseResult([]byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	if _, _, err := parseProgress([]byte(`{"content":"a","isError":true}`)); err == nil || !strings.Contains(err.Error(), "there are content, details, checkpoint") {
		t.Error(err)
	}
}
