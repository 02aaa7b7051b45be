package rewrite

import (
	"iter"

	"github.com/drover-run/drover/pkg/store"
)

// A batch is large enough to make the handing over cheap.
const batchRecords = 128

// ahead reads records on one core while another uses them. It keeps a few batches
// in memory.
func ahead(records iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		a := &reading{batches: make(chan []store.Record, 2), done: make(chan struct{})}
		go a.read(records)
		defer a.stop()
		for batch := range a.batches {
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
		}
		if a.err != nil {
			yield(store.Record{}, a.err)
		}
	}
}

// reading is an iteration under way.
type reading struct {
	batches chan []store.Record // closed at the end, then err is set
	done    chan struct{}
	err     error
}

func (a *reading) read(records iter.Seq2[store.Record, error]) {
	defer close(a.batches)
	batch := make([]store.Record, 0, batchRecords)
	for r, err := range records {
		if err != nil {
			a.err = err
			break
		}
		if batch = append(batch, r); len(batch) < batchRecords {
			continue
		}
		if !a.hand(batch) {
			return
		}
		batch = make([]store.Record, 0, batchRecords)
	}
	a.hand(batch) // what was read before an error counts
}

// hand passes a batch on, false when nobody wants it any more.
func (a *reading) hand(batch []store.Record) bool {
	select {
	case a.batches <- batch:
		return true
	case <-a.done:
		return false
	}
}

// stop waits for the end of the reading, which it brings about.
func (a *reading) stop() {
	close(a.done)
	for range a.batches {
	}
}
