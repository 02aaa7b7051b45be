package cli

import (
	"slices"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progressDelay is how long work may take without a bar.
const progressDelay = 500 * time.Millisecond

// progress is a bar on a terminal's stderr for work that takes a while. The
// zero bar of a printer without progress shows nothing.
type progress struct {
	out     *printer
	what    string
	started time.Time
	shown   *mpb.Progress
	bar     *mpb.Bar
}

func (p *printer) newProgress(what string) *progress {
	return &progress{out: p, what: what, started: time.Now()}
}

// bytes tells how far the work has come. It is called one at a time.
func (p *progress) bytes(done, total int64) {
	p.move(done, total, decor.Name(" "), decor.AverageSpeed(decor.SizeB1024(0), "%.1f"))
}

// count is bytes for work that is counted in pieces.
func (p *progress) count(done, total int) { p.move(int64(done), int64(total)) }

func (p *progress) move(done, total int64, speed ...decor.Decorator) {
	if !p.out.progress || p.bar == nil && time.Since(p.started) < progressDelay {
		return
	}
	if p.bar == nil {
		p.shown = mpb.New(mpb.WithOutput(p.out.err), mpb.WithWidth(40), mpb.WithAutoRefresh())
		p.bar = p.shown.AddBar(total,
			mpb.PrependDecorators(decor.Name(p.what+" ")),
			mpb.AppendDecorators(slices.Concat([]decor.Decorator{decor.Percentage()}, speed, []decor.Decorator{
				decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left"),
			})...), // a second list would take the place of the first
			mpb.BarRemoveOnComplete(),
		)
	}
	p.bar.SetTotal(total, false)
	p.bar.SetCurrent(done)
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.shown.Wait()
	}
}
