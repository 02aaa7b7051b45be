package modeltest

import (
	"encoding/json"
	"testing"
)

func TestUnpaired(t *testing.T) {
	const (
		asks   = `{"role":"user","content":"x"}`
		calls  = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"ls"}},{"id":"b","function":{"name":"ls"}}]}`
		one    = `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls"}}]}`
		two    = `{"role":"assistant","tool_calls":[{"id":"b","function":{"name":"ls"}}]}`
		a      = `{"role":"tool","tool_call_id":"a","content":"x"}`
		b      = `{"role":"tool","tool_call_id":"b","content":"x"}`
		noName = `{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}`
	)
	for name, tt := range map[string]struct {
		messages []string
		want     string
	}{
		"results":               {[]string{asks, calls, a, b, asks}, ""},
		"in another order":      {[]string{asks, calls, b, a}, ""},
		"calls in a row":        {[]string{asks, one, two, a, b}, ""},
		"no result":             {[]string{asks, calls, a}, `the calls ["b"] have no result`},
		"a question in between": {[]string{asks, one, asks, a}, `message 2 comes before the results of ["a"]`},
		"a result twice":        {[]string{asks, one, a, a}, `message 3 is the result of "a", which nobody called for`},
		"no name":               {[]string{asks, noName, a}, "message 1 has a call without id or name"},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []ChatMessage
			for _, text := range tt.messages {
				var m ChatMessage
				if err := json.Unmarshal([]byte(text), &m); err != nil {
					t.Fatal(err)
				}
				messages = append(messages, m)
			}
			if got := Unpaired(messages); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
