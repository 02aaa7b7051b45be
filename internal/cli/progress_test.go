package cli

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A bar says how far the work is, how fast it goes and how long it will take.
func TestProgressBar(t *testing.T) {
	for _, c := range []struct {
		name string
		move func(*progress)
		want []string
	}{
		{"bytes", func(p *progress) { p.bytes(32<<20, 128<<20) }, []string{"work ", "25 %", "MiB/s", "s left"}},
		{"pieces", func(p *progress) { p.count(1, 4) }, []string{"work ", "25 %", "s left"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			shown := make(chan string)
			go func() {
				b, _ := io.ReadAll(r)
				shown <- string(b)
			}()
			out := &printer{streams: newStreams(nil, io.Discard, w), progress: true}
			p := out.newProgress("work")
			c.move(p)
			if p.bar != nil {
				t.Errorf("%s: a bar for work that has only begun", c.name)
			}
			<-time.After(2 * progressDelay)
			c.move(p)
			<-time.After(time.Second)
			c.move(p)
			<-time.After(time.Second)
			p.end()
			p.end()
			_ = w.Close()
			text := <-shown
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q in %q", c.name, want, text)
				}
			}
		})
	}
}
