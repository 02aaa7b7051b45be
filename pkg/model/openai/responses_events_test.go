package openai

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEventReader(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	for _, tt := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"events", "event: a\ndata: 1\n\ndata:2\n\n", []string{"1", "2"}, io.EOF},
		{"carriage returns, comments, other fields", ": hi\r\n\r\nid: 7\r\nretry: 3\r\ndata: 1\r\n\r\n", []string{"1"}, io.EOF},
		{"data in several lines", "data: [1,\ndata: 2]\n\n", []string{"[1,\n2]"}, io.EOF},
		{"a long line", "data: \"" + long + "\"\n\n: " + long + "\ndata: 2\n\n", []string{`"` + long + `"`, "2"}, io.EOF},
		{"what is said once more", "event: response.output_text.done\ndata: \"" + long + "\"\ndata: 1\n\ndata: 2\n\n", []string{"2"}, io.EOF},
		{"no empty line at the end", "data: 1\n\ndata: 2\n", []string{"1", "2"}, io.EOF},
		{"no line's end at the end", "data: 1\n\ndata: 2", []string{"1", "2"}, io.EOF},
		{"cut in the data", "data: 1\n\ndata: {\"a\":", []string{"1"}, io.ErrUnexpectedEOF},
		{"cut after a field", "data: 1\n\nevent: x", []string{"1"}, io.ErrUnexpectedEOF},
		{"cut in a long line", "data: \"" + long, nil, io.ErrUnexpectedEOF},
		{"nothing", "", nil, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newEventReader(strings.NewReader(tt.in))
			var got []string
			data, err := r.next()
			for ; err == nil; data, err = r.next() {
				got = append(got, string(data))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if err != tt.err {
				t.Errorf("error %v, want %v", err, tt.err)
			}
		})
	}
}
