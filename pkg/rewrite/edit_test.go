package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/rewrite"
	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/jsonl"
)

// What a redaction makes of one payload.
func TestRedactedPayloads(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{
			"a changed block loses what vouched for it",
			assistant(`{"type":"thinking","thinking":"secret","thinkingSignature":"s1"},{"type":"text","text":"x","textSignature":"s2"}`, ""),
			assistant(`{"type":"thinking","thinking":"***"},{"type":"text","text":"x","textSignature":"s2"}`, ""),
		},
		{
			"keys that become one are told apart",
			assistant(call(`{"secret":1,"***":2,"a secret":3}`), ""),
			assistant(call(`{"*** (2)":1,"***":2,"a ***":3}`), ""),
		},
		{
			"numbers, spellings and white space of the rest stay",
			assistant(call(`{"n":1.50e3,"u":"\u0041\/","d":1,"d":2,"x":"a secret"}`), `,"big":12345678901234567890`),
			assistant(call(`{"n":1.50e3,"u":"\u0041\/","d":1,"d":2,"x":"a ***"}`), `,"big":12345678901234567890`),
		},
		{
			"lone surrogates stay",
			`{"message":{"role":"user","content":"\ud83d secret \ude00","timestamp":1}}`,
			`{"message":{"role":"user","content":"\ud83d *** \ude00","timestamp":1}}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, jsonl.Driver{})
			at := w.entry(store.TypeMessage, "", tt.raw)
			w.rewrite(&rewrite.Selection{Rules: rules(t, "secret ==> ***")})
			found, err := w.s.Entries(t.Context(), []string{at})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(found[at].Payload)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is structure is never changed, and a rule that would is refused (D54).
func TestStructuralMatches(t *testing.T) {
	for _, tt := range []struct{ rule, raw, field string }{
		{"toolUse ==> x", `{"message":{"role":"assistant","content":[],"stopReason":"toolUse","timestamp":1}}`, "stopReason"},
		{"secret ==> x", assistant(`{"type":"toolCall","id":"secret","name":"b","arguments":{}}`, ""), "id"},
		{"secret ==> x", assistant(`{"type":"toolCall","id":"c","name":"secret","arguments":{}}`, ""), "name"},
		{"secret ==> x", assistant(`{"type":"text","text":"t","textSignature":"a secret"}`, ""), "textSignature"},
		{"regex:aGVs.* ==> x", `{"message":{"role":"user","content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}],"timestamp":1}}`, "data"},
		{"content ==> x", `{"message":{"role":"user","content":"t","timestamp":1}}`, "content"},
	} {
		w := newWorld(t, jsonl.Driver{})
		at := w.entry(store.TypeMessage, "", tt.raw)
		p, err := w.plan(&rewrite.Selection{Rules: rules(t, tt.rule)})
		if err != nil {
			t.Fatal(err)
		}
		refused, ok := errors.AsType[*rewrite.StructuralMatch](p.Refusal())
		if !ok || refused.Matches[0] != (rewrite.Match{Where: "entry " + at, Field: tt.field}) {
			t.Errorf("%s: %v", tt.rule, p.Refusal())
		}
	}
}

// An address, a lane's configuration and an id are structure, too.
func TestStructuralRecords(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.set("app", "a secret key", `1`)
	w.entry(store.TypeCustom, "secret-type", `{}`)
	p, err := w.plan(&rewrite.Selection{Rules: rules(t, "secret ==> x")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range p.Structural {
		got = append(got, m.Field)
	}
	if diff := cmp.Diff([]string{"key", "customType"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEmptyKey(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.set("app", "k", `{"secret":1}`)
	if _, err := w.plan(&rewrite.Selection{Rules: rules(t, "secret ==> ")}); !errors.Is(err, rewrite.ErrEmptyKey) {
		t.Errorf("got %v", err)
	}
}

// A name that is redacted to nothing is no name.
func TestEmptyName(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	w.set("pi.session.name", "", `"secret"`)
	p := w.rewrite(&rewrite.Selection{Rules: rules(t, "secret ==> ")})
	if _, named, err := store.Get(t.Context(), w.s, store.SessionName()); named || err != nil || p.Dropped.Values != 1 {
		t.Errorf("named %t, %v, dropped %+v", named, err, p.Dropped)
	}
}

// A proof that fails keeps the old session and names the place, not the text.
func TestNotProven(t *testing.T) {
	for _, d := range drivers() {
		w := newWorld(t, d)
		at := w.entry(store.TypeMessage, "", `{"message":{"role":"user","content":"the other secret","timestamp":1}}`)
		holder := w.entry(store.TypeMessage, "", `{"message":{"role":"user","content":"see `+at+`","timestamp":1}}`)
		before := records(t, w.s)
		p, err := w.plan(&rewrite.Selection{}, "secret")
		if err != nil {
			t.Fatal(err)
		}
		refusal, ok := errors.AsType[*rewrite.NotProven](p.Refusal())
		if !ok || refusal.Matches[0].Where != "entry "+at {
			t.Errorf("got %v", p.Refusal())
		}
		// The id of a dropped entry in another one's text is only found in the new file.
		p, err = w.plan(&rewrite.Selection{DropEntries: []string{at}})
		if err != nil || p.Refusal() != nil {
			t.Fatal(err, p.Refusal())
		}
		proof := rewrite.NewProof(nil, nil)
		proof.Gone(p)
		err = (&rewrite.Rewrite{Plan: p, Proof: proof}).Execute(t.Context(), w.s)
		refusal, ok = errors.AsType[*rewrite.NotProven](err)
		if !ok || refusal.Matches[0].Where != "entry "+holder || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, records(t, w.s)); diff != "" {
			t.Errorf("the session has changed:\n%s", diff)
		}
	}
}

// B14: a session that has changed since the plan was made is not replaced.
func TestB14ChangedSincePlanned(t *testing.T) {
	w := newWorld(t, jsonl.Driver{})
	at := w.entry(store.TypeMessage, "", `{"message":{"role":"user","content":"x","timestamp":1}}`)
	p, err := w.plan(&rewrite.Selection{DropEntries: []string{at}})
	if err != nil {
		t.Fatal(err)
	}
	w.entry(store.TypeMessage, "", `{"message":{"role":"user","content":"later","timestamp":1}}`)
	if err := (&rewrite.Rewrite{Plan: p, Proof: rewrite.NewProof(nil, nil)}).Execute(t.Context(), w.s); err == nil {
		t.Error("the later entry is lost")
	}
	if n := len(records(t, w.s)); n != 4 {
		t.Errorf("%d records", n)
	}
}

// B44: JSON in a text may spell its backslashes, and the digits of its escapes, as
// escapes of the JSON around it.
func TestB44EscapesOfEscapes(t *testing.T) {
	for _, d := range drivers() {
		for data, literal := range map[string]string{
			`{\"k\":\"pa\u005c\"ss\"}`:         `pa"ss`,
			`{\"k\":\"pa\u005c\u0022ss\"}`:     `pa"ss`,
			`{\"k\":\"caf\u005cu00e9\"}`:       `café`,
			`{\"k\":\"caf\\u005cu00e9\"}`:      `café`,
			`{\"k\":\"a\u005c/b9\"}`:           `a/b9`,
			`\\u006\u0031bc9`:                  `abc9`,
			`{\"k\":\"\\u0\u0030\u00361bc9\"}`: `abc9`,
		} {
			w := newWorld(t, d)
			w.entry(store.TypeCustom, "note", `{"data":"`+data+`"}`)
			if p := w.rewrite(&rewrite.Selection{Rules: rules(t, literal+" ==> [GONE]")}); p.Redactions != 1 {
				t.Errorf("%s: %d redactions of %s in %s", d.Name(), p.Redactions, literal, data)
			}
			for _, r := range records(t, w.s) {
				if r.Entry != nil && !strings.Contains(string(r.Entry.Payload), "[GONE]") {
					t.Errorf("%s: %s is %s", d.Name(), data, r.Entry.Payload)
				}
			}
		}
	}
}
