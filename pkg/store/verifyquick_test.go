package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-run/drover/pkg/message"
)

// messages are payloads for which a glance has to agree with the full judgement.
func glanceSeeds() []string {
	seeds := []string{
		`{}`, `{"message":{}}`, `{"message":null}`, `{"message":{"role":"user"}}`, `{"message":{"role":"user","content":"a"}}x`,
		`{"message":{"role":"user","content":"a"},"message":{"role":"user"}}`, `{"\u006dessage":{"role":"user","content":"a"}}`,
		`{"message":{"content":"a","role":"user"}}`, `{"message":{"role":"user","content":" "}}`, `{"message":{"role":"user","content":"\n"}}`,
		`{"message":{"role":"user","content":"é"},"terminate":true}`, `{"message": {"role":"user","content":"a"}}`,
		`{"message":{"role":"user","role":"robot","content":"a"}}`, `{"message":{"role":"user","content":"a","timestamp":1.5}}`,
		`{"message":{"role":"user","content":"a","content":7}}`, `{"message":{"role":"user","content":"a","\u0063ontent":7}}`,
		`{"message":{"role":"user","content":"a","timestamp":null}}`, `{"message":{"role":"user","content":"a",}}`, `{"message":{"role":"user","content":"a"`,
		`{"message":{"role":"assistant","content":"a","stopReason":"stop"}}`, `{"message":{"role":"assistant","content":[]}}`,
	}
	blocks := []string{
		`{"type":"text","text":"a"}`, `{"type":"text","text":" "}`, `{"type":"text","thinking":"a"}`, `{"type":"thinking","thinking":"a","redacted":false}`,
		`{"type":"image","data":"","mimeType":""}`, `{"type":"image","data":""}`, `{"type":"toolCall","id":"c1","name":"n","arguments":{}}`,
		`{"type":"toolCall","id":1,"name":"n","arguments":{}}`, `{"type":"toolCall","id":"c","name":"n","arguments":[]}`, `{"type":"novel"}`,
		`{"text":"a","type":"text"}`, `{"type":"text","text":"a","type":"image"}`, `{"type":"text","text":7}`, `7`, `{}`, `{"type":"text","text":"a","textSignature":7}`,
	}
	for _, b := range blocks {
		for _, m := range []string{
			`{"role":"user","content":[%s]}`, `{"role":"assistant","content":[%s],"stopReason":"stop","usage":{"input":1}}`,
			`{"role":"toolResult","toolCallId":"c1","toolName":"t","isError":false,"content":[%s]}`,
		} {
			seeds = append(seeds, `{"message":`+fmt.Sprintf(m, b)+`}`, `{"message":`+fmt.Sprintf(m, b+","+blocks[0])+`}`)
		}
	}
	for _, field := range []string{
		`"stopReason":"pending"`, `"stopReason":"later"`, `"stopReason":7`, `"stopReason":"stop","usage":7`, `"stopReason":"stop","api":null`,
		`"stopReason":"stop","deferred":[]`, `"stopReason":"stop","diagnostics":{}`, `"stopReason":"stop","stopReason":"pending"`, `"stopReason":"stop","novel":[1]`,
	} {
		seeds = append(seeds, `{"message":{"role":"assistant","content":[],`+field+`}}`)
	}
	for _, field := range []string{`"toolCallId":""`, `"toolCallId":7`, `"toolName":"t"`, `"toolName":"t","isError":0,"toolCallId":"c"`} {
		seeds = append(seeds, `{"message":{"role":"toolResult","content":[],`+field+`}}`)
	}
	return seeds
}

// What a glance vouches for, the full judgement has nothing against, and both
// see the same calls.
func checkGlance(t *testing.T, payload string) (vouched bool) {
	g, sound := glanceAt([]byte(payload))
	if !sound {
		return false
	}
	if err := validObject([]byte(payload)); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	m := Entry{Structure: Structure{Type: TypeMessage}, Payload: []byte(payload)}.Message()
	if err := message.Validate(m); err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	if want := callsOf(m); strings.Join(want, "\n") != strings.Join(g.calls, "\n") || len(want) != len(g.calls) {
		t.Fatalf("%s: calls %q, want %q", payload, g.calls, want)
	}
	if quoted := `"` + string(m.Role()) + `"`; quoted != string(g.role) {
		t.Fatalf("%s: role %s, want %s", payload, g.role, quoted)
	}
	return true
}

func TestGlanceVouchesForSoundMessagesOnly(t *testing.T) {
	vouched := 0
	for _, payload := range glanceSeeds() {
		if checkGlance(t, payload) {
			vouched++
		}
	}
	if vouched < 15 {
		t.Fatalf("vouched for %d messages only", vouched)
	}
}

func TestKeysTellIDsApart(t *testing.T) {
	keys := make(map[IDKey]string)
	for _, id := range []string{
		"", "a", "018bcfe5-6800-7abc-8000-0000000aaaaa", "018BCFE5-6800-7abc-8000-0000000aaaaa", "018bcfe5-6800-7abc-8000-0000000aaaab",
		"018bcfe5+6800-7abc-8000-0000000aaaaa", "018bcfe568007abc80000000000aaaaa", "018bcfe5-6800-7abc-8000-0000000aaaa-", "118bcfe5-6800-7abc-8000-0000000aaaaa",
		"018bcfe5-6800-7abc-8000-00-000000aaa", "-18bcfe5-6800-7abc-8000-0000000aaaaa",
	} {
		if other, taken := keys[KeyOf(id)]; taken {
			t.Errorf("%q and %q have one key", id, other)
		}
		keys[KeyOf(id)] = id
	}
	want := IDKey{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x7a, 0xbc, 0x80, 0, 0, 0, 0, 0x0a, 0xaa, 0xaa}
	if got := KeyOf("018bcfe5-6800-7abc-8000-0000000aaaaa"); got != want {
		t.Errorf("key %x, want %x", got, want)
	}
}

func FuzzGlance(f *testing.F) {
	for _, payload := range glanceSeeds() {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) { checkGlance(t, payload) })
}
