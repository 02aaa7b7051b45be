package program

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-run/drover/pkg/message"
)

func TestProgress(t *testing.T) {
	w := newWorld(t)
	got := w.call(t, shell(`echo '{"content":[{"type":"text","text":"half"}],"details":{"n":1},"checkpoint":true}' >&3; echo done`), `{}`)
	want := outcome{Text: "done\n", Details: fine, Updates: []update{{"half", `{"n":1}`, true}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Bad lines are no failure of the call: its details tell of them.
func TestProgressBadLines(t *testing.T) {
	w := newWorld(t)
	got := w.call(t, shell(`printf '\n{"content":1}\nnonsense\n{"content":"good"}' >&3; head -c 300000 /dev/zero >&3; echo >&3; echo done`), `{}`)
	notes := `"line 2 of descriptor 3: content is not an array of blocks; it begins with \"{\\\"content\\\":1}\"",` +
		`"line 3 of descriptor 3: it is not JSON: invalid literal at byte 1; it begins with \"nonsense\"",` +
		`"line 4 of descriptor 3: it is longer than 256 KiB"`
	want := outcome{Text: "done\n", Details: fine[:len(fine)-1] + `,"progressErrors":[` + notes + `]}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = w.call(t, shellJSON(`for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo x >&3; done; echo '{"content":"a"}'`), `{}`)
	if !strings.HasSuffix(got.Details, `"2 more lines"]}`) || got.IsError {
		t.Errorf("%+v", got)
	}
}

// What comes too fast is not reported line by line: the latest counts, and of
// checkpoints the latest one too.
func TestProgressTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []update
		p := startProgress(func(r message.ToolResult, checkpoint bool) {
			got = append(got, update{textOf(r), string(r.Details), checkpoint})
		})
		say := func(n int, checkpoint bool) {
			fmt.Fprintf(p, `{"content":"%d","checkpoint":%t}`+"\n", n, checkpoint)
		}
		say(0, false)
		synctest.Wait()
		for n := range 1000 {
			say(n, n%500 == 499)
		}
		synctest.Wait()
		time.Sleep(updateEvery)
		synctest.Wait()
		say(1000, true)
		say(1001, false)
		p.finish()
		want := []update{{"0", "", false}, {"999", "", true}, {"1000", "", true}, {"1001", "", false}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
