package message

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// odd holds what a decoder would lose: unknown fields, a duplicate key, a lone
// surrogate, a number beyond float64, odd spellings.
const odd = `{"role":"assistant","x-new":{"b":1,"a":[1.0,1e3]},"content":[{"type":"text","text":"caf\u00e9 \ud83d \/ <&>","y":null}],` +
	`"api":"a","provider":"p","model":"old","model":"m","usage":{"input":12345678901234567890123,"output":1},"stopReason":"stop","timestamp":1733234567890,"n":-0.0}`

func TestMessageRoundTrip(t *testing.T) {
	var m Message
	if err := m.UnmarshalJSON([]byte(odd)); err != nil {
		t.Fatal(err)
	}
	appended, err := m.AppendJSON([]byte("> "))
	if err != nil || string(appended) != "> "+odd {
		t.Errorf("AppendJSON = %s, %v", appended, err)
	}
	marshalled, err := m.MarshalJSON()
	if err != nil || string(marshalled) != odd {
		t.Errorf("MarshalJSON = %s, %v", marshalled, err)
	}
	normalized, err := Normalize([]byte(`{"role":"user", "content":"\ud83d caf\u00e9 \/", "n":1.00, "n":2, "timestamp":7 }`), 1)
	want := `{"role":"user","content":"\ud83d caf\u00e9 \/","n":1.00,"n":2,"timestamp":7}`
	if err != nil || string(normalized) != want {
		t.Errorf("Normalize = %s, %v", normalized, err)
	}
}

func TestUnmarshalCopies(t *testing.T) {
	data := []byte(`{"role":"user"}`)
	var m Message
	var f Frame
	var h DeferredHandle
	for _, u := range []json.Unmarshaler{&m, &f, &h} {
		if err := u.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
	}
	data[0] = '!'
	for _, got := range []string{string(m), string(f), string(h.Raw)} {
		if got != `{"role":"user"}` {
			t.Errorf("kept the caller's buffer: %s", got)
		}
	}
}

func TestMessageViews(t *testing.T) {
	m := Message(odd)
	if got := m.Role(); got != RoleAssistant {
		t.Errorf("Role = %q", got)
	}
	if got := m.Timestamp(); got != 1733234567890 {
		t.Errorf("Timestamp = %d", got)
	}
	if got := m.StopReason(); got != StopStop {
		t.Errorf("StopReason = %q", got)
	}
	if got, ok := m.Get("model"); !ok || string(got) != `"m"` {
		t.Errorf("Get(model) = %s, %v", got, ok)
	}
	if got, ok := m.Get("nothing"); ok {
		t.Errorf("Get(nothing) = %s", got)
	}
	if got := m.Text(); got != "café \xed\xa0\xbd / <&>" {
		t.Errorf("Text = %q", got)
	}
	if got := Message(`{"ro\u006ce":"us\u0065r","timestamp":1.5e3}`); got.Role() != RoleUser || got.Timestamp() != 1500 {
		t.Errorf("escaped spelling: %q, %d", got.Role(), got.Timestamp())
	}
	if got := Message(`{"role":"hookMessage"}`).Role(); got != "hookMessage" {
		t.Errorf("unknown role = %q", got)
	}
	if got := Message(`{"errorMessage":"a\nb"}`).ErrorMessage(); got != "a\nb" {
		t.Errorf("ErrorMessage = %q", got)
	}
}

func TestViewsOfWrongKindsAreZero(t *testing.T) {
	for _, in := range []string{``, `null`, `[]`, `{`, `{"role":5,"timestamp":"x","stopReason":[],"usage":7,"content":3}`, `{"role":"user"}x`} {
		m := Message(in)
		_, hasUsage := m.Usage()
		if m.Role() != "" || m.Timestamp() != 0 || m.StopReason() != "" || m.Text() != "" || m.ToolCalls() != nil || hasUsage {
			t.Errorf("%s: a view is not zero", in)
		}
	}
	if _, err := Message(`{"content":3}`).Blocks(); err == nil {
		t.Error("Blocks of a number: no error")
	}
	_, err := Message(`{"content":[{},7]}`).Blocks()
	if diff := cmp.Diff(&FieldError{Field: "content[1]", Msg: "is not an object"}, err); diff != "" {
		t.Error(diff)
	}
}

func TestText(t *testing.T) {
	tests := map[string]string{
		`{"role":"user","content":"a\u00e9"}`: "aé",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"x","text":"no"},{"type":"text","text":""},{"type":"text","text":"b"}]}`: "a\n\nb",
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"a"}]}`:                                                      "a",
		`{"role":"assistant","content":null}`:                                               "",
		`{"role":"bashExecution","command":"ls","output":"f\n"}`:                            "ls\nf\n",
		`{"role":"branchSummary","summary":"s"}`:                                            "s",
		`{"role":"compactionSummary","summary":"s"}`:                                        "s",
		`{"role":"custom","content":[{"type":"text","text":5},{"type":"text","text":"x"}]}`: "\nx",
	}
	for in, want := range tests {
		if got := Message(in).Text(); got != want {
			t.Errorf("Text(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestBlocks(t *testing.T) {
	tests := []struct {
		in   string
		want Block
	}{
		{`{"type":"text","text":"a","textSignature":"s"}`, Block{Type: BlockText, Text: "a", TextSignature: "s"}},
		{`{"type":"thinking","thinking":"a","thinkingSignature":"s","redacted":true}`,
			Block{Type: BlockThinking, Thinking: "a", ThinkingSignature: "s", Redacted: true}},
		{`{"type":"image","data":"QQ==","mimeType":"image/png"}`, Block{Type: BlockImage, Data: "QQ==", MimeType: "image/png"}},
		{`{"type":"toolCall","id":"1","name":"n","arguments":{"a":1.0},"thoughtSignature":"s","namespace":"ns"}`,
			Block{Type: BlockToolCall, ID: "1", Name: "n", Arguments: json.RawMessage(`{"a":1.0}`), ThoughtSignature: "s", Namespace: "ns"}},
		{`{"type":"video","url":"u"}`, Block{Type: "video"}},
		{`{"t\u0079pe":"text","text":"first","text":"last","other":[1]}`, Block{Type: BlockText, Text: "last"}},
		{`{"type":"text","text":5}`, Block{Type: BlockText}},
	}
	for _, tt := range tests {
		tt.want.Raw = json.RawMessage(tt.in)
		m := Message(`{"role":"assistant","content":[` + tt.in + `]}`)
		got, err := m.Blocks()
		if err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if diff := cmp.Diff([]Block{tt.want}, got); diff != "" {
			t.Errorf("%s: %s", tt.in, diff)
		}
		out, err := got[0].AppendJSON(nil)
		if err != nil || string(out) != tt.in {
			t.Errorf("AppendJSON = %s, %v; want %s", out, err, tt.in)
		}
	}
	if got, err := Message(`{"content":"a"}`).Blocks(); err != nil || !cmp.Equal(got, []Block{TextBlock("a")}) {
		t.Errorf("string content = %v, %v", got, err)
	}
}

func TestBuiltBlocks(t *testing.T) {
	tests := []struct {
		in   Block
		want string
	}{
		{TextBlock("<a>\xed\xa0\xbd"), `{"type":"text","text":"<a>\ud83d"}`},
		{Block{Type: BlockText, Text: "a", TextSignature: "s"}, `{"type":"text","text":"a","textSignature":"s"}`},
		{Block{Type: BlockThinking}, `{"type":"thinking","thinking":""}`},
		{Block{Type: BlockThinking, Thinking: "a", ThinkingSignature: "s", Redacted: true},
			`{"type":"thinking","thinking":"a","thinkingSignature":"s","redacted":true}`},
		{Block{Type: BlockImage, Data: "QQ==", MimeType: "image/png"}, `{"type":"image","data":"QQ==","mimeType":"image/png"}`},
		{Block{Type: BlockToolCall, ID: "1", Name: "n"}, `{"type":"toolCall","id":"1","name":"n","arguments":{}}`},
		{Block{Type: BlockToolCall, ID: "1", Name: "n", Arguments: []byte(`{"a":"b`), ThoughtSignature: "s", Namespace: "x"},
			`{"type":"toolCall","id":"1","name":"n","arguments":{"a":"b"},"thoughtSignature":"s","namespace":"x"}`},
	}
	for _, tt := range tests {
		got, err := tt.in.AppendJSON(nil)
		if err != nil || string(got) != tt.want {
			t.Errorf("AppendJSON = %s, %v; want %s", got, err, tt.want)
		}
	}
}

func TestToolCalls(t *testing.T) {
	content := `"content":[{"type":"text","text":"a"},{"type":"toolCall","id":"1"},{"type":"toolCall","id":"2"}]`
	var ids []string
	for _, c := range Message(`{"role":"assistant",` + content + `}`).ToolCalls() {
		ids = append(ids, c.ID)
	}
	if diff := cmp.Diff([]string{"1", "2"}, ids); diff != "" {
		t.Error(diff)
	}
	if got := Message(`{"role":"user",` + content + `}`).ToolCalls(); got != nil {
		t.Errorf("a user's tool calls: %v", got)
	}
}

func TestWith(t *testing.T) {
	m := Message(`{"role":"assistant","stopReason":"stop","x":1.0}`)
	got, err := m.With("stopReason", []byte(`"error"`))
	if err != nil || string(got) != `{"role":"assistant","stopReason":"error","x":1.0}` {
		t.Errorf("With = %s, %v", got, err)
	}
	got, err = got.With("errorMessage", []byte(`"e"`))
	if err != nil || string(got) != `{"role":"assistant","stopReason":"error","x":1.0,"errorMessage":"e"}` {
		t.Errorf("With = %s, %v", got, err)
	}
	if got, err := m.With("x", []byte(`{`)); err == nil {
		t.Errorf("With no value = %s", got)
	}
	if string(m) != `{"role":"assistant","stopReason":"stop","x":1.0}` {
		t.Errorf("With changed its receiver: %s", m)
	}
}

func TestBuilders(t *testing.T) {
	image := Block{Type: BlockImage, Data: "QQ==", MimeType: "image/png"}
	usage := Usage{Input: 1}
	tests := []struct {
		got  Message
		want string
	}{
		{NewUser("hi", nil, 5), `{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":5}`},
		{NewUser("", nil, 5), `{"role":"user","content":[{"type":"text","text":""}],"timestamp":5}`},
		{NewUser("hi", []Block{image}, 5), `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"QQ==","mimeType":"image/png"}],"timestamp":5}`},
		{NewUser("", []Block{image}, 5), `{"role":"user","content":[{"type":"image","data":"QQ==","mimeType":"image/png"}],"timestamp":5}`},
		{NewToolResult("c", "t", ToolResult{}, 5), `{"role":"toolResult","toolCallId":"c","toolName":"t","content":[],"isError":false,"timestamp":5}`},
		{NewToolResult("c", "t", ToolResult{
			Content: []Block{TextBlock("r")}, Details: []byte(`{"d":1}`), IsError: true, Usage: &usage, AddedToolNames: []string{"a", "b"}, Terminate: true,
		}, 5), `{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{"type":"text","text":"r"}],"details":{"d":1},` +
			`"usage":{"input":1,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},` +
			`"addedToolNames":["a","b"],"isError":true,"timestamp":5}`},
	}
	for _, tt := range tests {
		if string(tt.got) != tt.want {
			t.Errorf("built %s, want %s", tt.got, tt.want)
		}
	}
}

func TestAssistant(t *testing.T) {
	const zero = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	tests := []struct {
		a    Assistant
		want string
	}{
		{Assistant{API: "a", Provider: "p", Model: "m", StopReason: StopPending, Timestamp: 5},
			`{"role":"assistant","content":[],"api":"a","provider":"p","model":"m",` + zero + `,"stopReason":"pending","timestamp":5}`},
		{Assistant{
			Content: []Block{{Type: BlockText, Text: "t", Raw: json.RawMessage(`{"type":"text","text":"t","x":1}`)}},
			API:     "a", Provider: "p", Model: "m", ResponseModel: "rm", ResponseID: "ri", StopReason: StopError, ErrorMessage: "e",
			RawStopReason: "rs", Deferred: json.RawMessage(`{"id":"1"}`), Diagnostics: json.RawMessage(`[{"type":"n"}]`), Timestamp: 5,
		}, `{"role":"assistant","content":[{"type":"text","text":"t","x":1}],"api":"a","provider":"p","model":"m","responseModel":"rm","responseId":"ri",` +
			zero + `,"stopReason":"error","errorMessage":"e","rawStopReason":"rs","deferred":{"id":"1"},"diagnostics":[{"type":"n"}],"timestamp":5}`},
	}
	for _, tt := range tests {
		got := tt.a.Message()
		if string(got) != tt.want {
			t.Errorf("Message = %s, want %s", got, tt.want)
		}
		back, err := ParseAssistant(got)
		if diff := cmp.Diff(tt.a, back); err != nil || diff != "" {
			t.Errorf("ParseAssistant: %v\n%s", err, diff)
		}
	}
	for _, bad := range []string{`{"role":"user"}`, `7`, `{"role":"assistant","content":5}`, `{"role":"assistant","content":[5]}`, `{"role":"assistant","usage":{"input":"1"}}`} {
		if a, err := ParseAssistant(Message(bad)); err == nil {
			t.Errorf("ParseAssistant(%s) = %v", bad, a)
		}
	}
}

func TestNoMessageIsNull(t *testing.T) {
	got, err := json.Marshal(struct {
		M Message
		F Frame
		H DeferredHandle
	}{})
	if want := `{"M":null,"F":null,"H":null}`; err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v; want %s", got, err, want)
	}
}

func TestOutputFile(t *testing.T) {
	for raw, want := range map[string]string{
		`{"role":"toolResult","details":{"fullOutputPath":"/tmp/a"}}`:                          "/tmp/a",
		`{"role":"bashExecution","fullOutputPath":"/tmp/b"}`:                                   "/tmp/b",
		`{"role":"toolResult","fullOutputPath":"/tmp/c"}`:                                      "",
		`{"role":"toolResult","content":[{"type":"text","text":"\"fullOutputPath\":\"/d\""}]}`: "",
		`{"role":"toolResult","details":{"fullOutputPath":7}}`:                                 "",
		`{"role":"user","content":"hi"}`:                                                       "",
	} {
		if got := Message(raw).OutputFile(); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
