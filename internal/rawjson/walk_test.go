package rawjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMembers(t *testing.T) {
	type pair struct {
		Key, Value, Span string
	}
	tests := []struct {
		text  string
		pairs []pair
		err   error
	}{
		{`{}`, nil, nil},
		{" {\n} ", nil, nil},
		{`{"a":1}`, []pair{{`"a"`, `1`, `"a":1`}}, nil},
		{
			` { "a" : [ 1 ] , "\u0061":{"x":{}},"a":"" } `,
			[]pair{{`"a"`, `[ 1 ]`, `"a" : [ 1 ]`}, {`"\u0061"`, `{"x":{}}`, `"\u0061":{"x":{}}`}, {`"a"`, `""`, `"a":""`}},
			nil,
		},
		{``, nil, &SyntaxError{0, msgEnd}},
		{`[]`, nil, &SyntaxError{0, msgObject}},
		{`{"a":1`, []pair{{`"a"`, `1`, `"a":1`}}, &SyntaxError{6, msgEnd}},
		{`{"a":1]`, []pair{{`"a"`, `1`, `"a":1`}}, &SyntaxError{6, msgObjectSep}},
		{`{"a":1,}`, []pair{{`"a"`, `1`, `"a":1`}}, &SyntaxError{7, msgKey}},
		{`{"a":1,"b":[}`, []pair{{`"a"`, `1`, `"a":1`}}, &SyntaxError{12, msgValue}},
		{`{"a":1,"b`, []pair{{`"a"`, `1`, `"a":1`}}, &SyntaxError{9, msgEnd}},
		{`{"a" 1}`, nil, &SyntaxError{5, msgColon}},
		{`{"a":1} {`, []pair{{`"a"`, `1`, `"a":1`}}, &SyntaxError{8, msgTrailing}},
		{`{}}`, nil, &SyntaxError{2, msgTrailing}},
		{`{1:2}`, nil, &SyntaxError{1, msgKey}},
	}
	for _, tt := range tests {
		var got []pair
		var gotErr error
		for m, err := range Members([]byte(tt.text)) {
			if gotErr = err; err == nil {
				got = append(got, pair{string(m.Key), string(m.Value), tt.text[m.Start:m.End]})
			}
		}
		if diff := cmp.Diff(tt.pairs, got); diff != "" {
			t.Errorf("Members(%q): %s", tt.text, diff)
		}
		if diff := cmp.Diff(tt.err, gotErr); diff != "" {
			t.Errorf("Members(%q): %s", tt.text, diff)
		}
	}
}

func TestElements(t *testing.T) {
	tests := []struct {
		text string
		want []string
		err  error
	}{
		{`[]`, nil, nil},
		{" [ ] ", nil, nil},
		{`[1,"a,]",[2,[3]],{"a":[]}]`, []string{`1`, `"a,]"`, `[2,[3]]`, `{"a":[]}`}, nil},
		{" [ 1 , [ 2 ] ]\n", []string{`1`, `[ 2 ]`}, nil},
		{`{}`, nil, &SyntaxError{0, msgArray}},
		{` `, nil, &SyntaxError{1, msgEnd}},
		{`[1`, []string{`1`}, &SyntaxError{2, msgEnd}},
		{`[1,`, []string{`1`}, &SyntaxError{3, msgEnd}},
		{`[1,]`, []string{`1`}, &SyntaxError{3, msgValue}},
		{`[1}`, []string{`1`}, &SyntaxError{2, msgArraySep}},
		{`[1]]`, []string{`1`}, &SyntaxError{3, msgTrailing}},
		{`[,]`, nil, &SyntaxError{1, msgValue}},
	}
	for _, tt := range tests {
		var got []string
		var gotErr error
		for e, err := range Elements([]byte(tt.text)) {
			if gotErr = err; err == nil {
				got = append(got, string(e))
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Elements(%q): %s", tt.text, diff)
		}
		if diff := cmp.Diff(tt.err, gotErr); diff != "" {
			t.Errorf("Elements(%q): %s", tt.text, diff)
		}
	}
}

// A walk that is left early reports nothing about the rest.
func TestWalkStops(t *testing.T) {
	object, array := []byte(`{"a":1,"b":2,!`), []byte(`[1,2,!`)
	n := 0
	if err := MembersFunc(object, func(Member) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("MembersFunc = %v after %d calls, want nil after 2", err, n)
	}
	n = 0
	if err := ElementsFunc(array, func(int, int) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("ElementsFunc = %v after %d calls, want nil after 2", err, n)
	}
	for _, err := range Members(object) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	for _, err := range Elements(array) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

// What a walk hands out cannot grow into its neighbour.
func TestSlicesAreClosed(t *testing.T) {
	text := `{"a":[1,2],"b":3}`
	b := []byte(text)
	for m, err := range Members(b) {
		if err != nil {
			t.Fatal(err)
		}
		_ = append(m.Key, 'x')
		_ = append(m.Value, 'x')
	}
	v, _ := Get(b, "a")
	for e, err := range Elements(v) {
		if err != nil {
			t.Fatal(err)
		}
		_ = append(e, 'x')
	}
	if string(b) != text {
		t.Errorf("the text became %s", b)
	}
}
