package v3import

import (
	"iter"

	"github.com/drover-run/drover/pkg/store"
)

const (
	// pipeFrom is the size of a file from which on its second pass is worth a
	// goroutine of its own.
	pipeFrom = 1 << 20
	// pipeBatch is how many bytes of payloads go through the pipe at a time.
	pipeBatch = 256 << 10
)

// piped runs a sequence of entries on a goroutine of its own, so that they are
// read and written at the same time. The goroutine has ended when the loop over
// the result ends. Three batches are alive at most.
func piped(seq iter.Seq2[*store.Entry, error]) iter.Seq2[*store.Entry, error] {
	type batch struct {
		entries []*store.Entry
		err     error
	}
	return func(yield func(*store.Entry, error) bool) {
		batches, stop := make(chan batch), make(chan struct{})
		go func() {
			defer close(batches)
			var b batch
			size := 0
			send := func() bool {
				select {
				case batches <- b:
					b, size = batch{}, 0
					return true
				case <-stop:
					return false
				}
			}
			for e, err := range seq {
				if err != nil {
					b.err = err
					break
				}
				b.entries = append(b.entries, e)
				if size += len(e.Payload); size >= pipeBatch && !send() {
					return
				}
			}
			send()
		}()
		defer func() {
			close(stop)
			for range batches {
			}
		}()
		for b := range batches {
			for _, e := range b.entries {
				if !yield(e, nil) {
					return
				}
			}
			if b.err != nil {
				yield(nil, b.err)
				return
			}
		}
	}
}
