package message

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateAccepts(t *testing.T) {
	for _, in := range []string{
		`{"role":"user","content":"hi"}`,
		`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"QQ==","mimeType":"image/png"}],"timestamp":1e3,"future":{}}`,
		`{"role":"user","content":[{"type":"image","data":"QQ==","mimeType":"image/png"}]}`,
		`{"role":"assistant","content":[],"stopReason":"error","errorMessage":"e","usage":null}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":""},{"type":"text","text":""},{"type":"toolCall","id":"","name":"n","arguments":{}}],"stopReason":"toolUse"}`,
		`{"role":"toolResult","toolCallId":"","toolName":"n","content":[],"isError":false}`,
		`{"role":"system","sections":{"a":null}}`,
		`{"role":"system","content":"s"}`,
		`{"role":"custom","customType":"t","content":""}`,
		`{"role":"bashExecution","command":"c","output":"","exitCode":null}`,
		`{"role":"branchSummary","summary":"s","fromId":null}`,
		`{"role":"compactionSummary","summary":"s","tokensBefore":5}`,
	} {
		if err := Validate(Message(in)); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{``, `message is not JSON: unexpected end of text at byte 0`},
		{`{"role":}`, `message is not JSON: expected a value at byte 8`},
		{`[]`, `message is not a JSON object`},
		{`{}`, `message field role is missing`},
		{`{"0":"{","1":"\""}`, `message field role is missing`},
		{`{"role":1}`, `message field role is not a string`},
		{`{"role":"hookMessage"}`, `message field role "hookMessage" is unknown`},
		{`{"role":"user","content":"a","timestamp":1.5}`, `message field timestamp is not an integer`},
		{`{"role":"user","content":"a","timestamp":"1"}`, `message field timestamp is not an integer`},
		{`{"role":"user"}`, `message field content is missing`},
		{`{"role":"user","content":" \n"}`, `message field content is empty`},
		{`{"role":"user","content":[]}`, `message field content is empty`},
		{`{"role":"user","content":[{"type":"text","text":""}]}`, `message field content is empty`},
		{`{"role":"user","content":7}`, `message field content is neither text nor blocks`},
		{`{"role":"user","content":["a"]}`, `message field content[0] is not an object`},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"text":"a"}]}`, `message field content[1].type "" does not belong here`},
		{`{"role":"user","content":[{"type":"thinking","thinking":"a"}]}`, `message field content[0].type "thinking" does not belong here`},
		{`{"role":"user","content":[{"type":"text"}]}`, `message field content[0].text is missing`},
		{`{"role":"user","content":[{"type":"image","data":5,"mimeType":"a"}]}`, `message field content[0].data is not a string`},
		{`{"role":"user","content":[{"type":"image","data":""}]}`, `message field content[0].mimeType is missing`},
		{`{"role":"assistant","content":"a","stopReason":"stop"}`, `message field content is not an array of blocks`},
		{`{"role":"assistant","content":[]}`, `message field stopReason is missing`},
		{`{"role":"assistant","content":[],"stopReason":"pending"}`, `message field stopReason is pending: the answer has not ended`},
		{`{"role":"assistant","content":[],"stopReason":"done"}`, `message field stopReason "done" is unknown`},
		{`{"role":"assistant","content":[],"stopReason":"stop","usage":{"input":"1"}}`, `message field usage is not a usage object`},
		{`{"role":"assistant","content":[],"stopReason":"stop","deferred":1}`, `message field deferred is not an object`},
		{`{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"n","arguments":"{}"}],"stopReason":"stop"}`, `message field content[0].arguments is not an object`},
		{`{"role":"assistant","content":[{"type":"image","data":"","mimeType":""}],"stopReason":"stop"}`, `message field content[0].type "image" does not belong here`},
		{`{"role":"toolResult","toolName":"n","content":[],"isError":false}`, `message field toolCallId is missing`},
		{`{"role":"toolResult","toolCallId":"1","toolName":"n","content":[]}`, `message field isError is missing`},
		{`{"role":"toolResult","toolCallId":"1","toolName":"n","content":"a","isError":true}`, `message field content is not an array of blocks`},
		{`{"role":"system","sections":[]}`, `message field sections is not an object`},
		{`{"role":"custom","content":"a"}`, `message field customType is missing`},
		{`{"role":"bashExecution","command":"a"}`, `message field output is missing`},
		{`{"role":"branchSummary"}`, `message field summary is missing`},
		{`{"role":"compactionSummary","summary":"s","tokensBefore":"5"}`, `message field tokensBefore is not an integer`},
	}
	for _, tt := range tests {
		err := Validate(Message(tt.in))
		if _, ok := errors.AsType[*FieldError](err); !ok || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestNormalize(t *testing.T) {
	got, err := Normalize([]byte(" { \"role\" : \"user\", \"content\": \"a b\" }\n"), 77)
	if err != nil || string(got) != `{"role":"user","content":"a b","timestamp":77}` {
		t.Errorf("Normalize = %s, %v", got, err)
	}
	got, err = Normalize([]byte(`{"role":"user","timestamp":null,"content":"a"}`), 77)
	if err != nil || string(got) != `{"role":"user","timestamp":77,"content":"a"}` {
		t.Errorf("Normalize = %s, %v", got, err)
	}
	_, err = Normalize([]byte("{\"role\":\"user\",\"content\":\"a\xff\"}"), 77)
	if diff := cmp.Diff(&UTF8Error{Offset: 27}, err); diff != "" {
		t.Error(diff)
	}
	if want := "invalid UTF-8 at byte 27"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	for _, bad := range []string{`{"role":"user"`, `{"role":"user","content":""}`} {
		if m, err := Normalize([]byte(bad), 77); err == nil {
			t.Errorf("Normalize(%s) = %s", bad, m)
		}
	}
}
