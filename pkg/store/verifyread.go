package store

import (
	"context"
	"iter"
)

// reading is a snapshot that is read on one core while its records are judged on
// another.
type reading struct {
	batches chan []Record // closed at the end, then err is set
	done    chan struct{}
	err     error
}

// A batch is large enough to make the handing over cheap, and small enough to
// keep little in memory.
const (
	batchRecords = 512
	batchBytes   = 256 << 10
)

func readAhead(ctx context.Context, records iter.Seq2[Record, error]) *reading {
	a := &reading{batches: make(chan []Record, 2), done: make(chan struct{})}
	go func() {
		defer close(a.batches)
		a.err = a.read(ctx, records)
	}()
	return a
}

func (a *reading) read(ctx context.Context, records iter.Seq2[Record, error]) error {
	batch, size := make([]Record, 0, batchRecords), 0
	for rec, err := range records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			a.hand(batch) // what was read is judged
			return err
		}
		batch, size = append(batch, rec), size+rec.size()
		if len(batch) < batchRecords && size < batchBytes {
			continue
		}
		if !a.hand(batch) {
			return nil
		}
		batch, size = make([]Record, 0, batchRecords), 0
	}
	a.hand(batch)
	return nil
}

func (r *Record) size() int {
	switch {
	case r.Entry != nil:
		return len(r.Entry.Payload)
	case r.Usage != nil:
		return len(r.Usage.Usage) + len(r.Usage.Details)
	}
	return len(r.Value)
}

// hand passes a batch on, false when nobody wants it any more.
func (a *reading) hand(batch []Record) bool {
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
