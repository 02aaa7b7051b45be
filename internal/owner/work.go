package owner

import (
	"context"
	"slices"
	"sync"
)

// work counts what was accepted and has not settled.
type work struct {
	mu     sync.Mutex
	n      int
	sealed bool
	idle   chan struct{} // somebody waits for n to become 0
}

// begin admits a piece of work, unless everything has been settled for good.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sealed {
		return false
	}
	w.n++
	return true
}

func (w *work) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

func (w *work) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n > 0
}

// settle waits until nothing is left, and admits nothing from that moment on.
func (w *work) settle(ctx context.Context) error {
	for {
		idle := w.sealIdle()
		if idle == nil {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *work) sealIdle() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n == 0 {
		w.sealed = true
		return nil
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	return w.idle
}

// intents are the lanes that this process is about to drive or drives: there an
// open operation without a pass is no operation that nobody drives.
type intents struct {
	mu       sync.Mutex
	lanes    map[string]int // meant by the process
	accepted map[string]int // promised to clients
	version  int            // of the rest
	changed  chan struct{}
	over     bool // the process means nothing more
}

func (i *intents) hold(lane string) (done func()) { return i.count(&i.lanes, lane) }

// promise is hold for what was accepted over the socket: end does not end it.
func (i *intents) promise(lane string) (done func()) { return i.count(&i.accepted, lane) }

func (i *intents) count(in *map[string]int, lane string) (done func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if *in == nil {
		*in = make(map[string]int)
	}
	(*in)[lane]++
	i.wake()
	return sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		(*in)[lane]--
		i.wake()
	})
}

// end says that this process drives nothing more of its own accord.
func (i *intents) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.wake()
}

// wake lets who waits look again; the lock is held.
func (i *intents) wake() {
	i.version++
	if i.changed != nil {
		close(i.changed)
		i.changed = nil
	}
}

// held tells whether somebody means to drive the lane: then changed closes when
// that may be over. An equal version means that nothing was different between
// two looks.
func (i *intents) held(lane string) (version int, changed <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.accepted[lane] == 0 && (i.over || i.lanes[lane] == 0) {
		return i.version, nil
	}
	if i.changed == nil {
		i.changed = make(chan struct{})
	}
	return i.version, i.changed
}

// receipts remember which requests without an id of their own were carried out,
// so that a repeat is not carried out again.
type receipts struct {
	mu    sync.Mutex
	known map[string]*receipt
	order []string
}

type receipt struct {
	done chan struct{}
	err  error
}

// maxReceipts bounds the memory; a repeat comes soon or not at all.
const maxReceipts = 4096

// do carries out a request once; a repeat waits for the first and is answered
// alike. One that failed is forgotten. carry must not be interrupted: whether it
// happened would not be known.
func (r *receipts) do(ctx context.Context, token string, carry func() error) (already bool, err error) {
	for {
		mine, theirs := r.claim(token)
		if theirs == nil {
			mine.err = carry()
			r.settle(token, mine)
			return false, mine.err
		}
		select {
		case <-theirs.done:
			if theirs.err == nil {
				return true, nil
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (r *receipts) claim(token string) (mine, theirs *receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.known[token]; ok {
		return nil, known
	}
	if r.known == nil {
		r.known = make(map[string]*receipt)
	}
	mine = &receipt{done: make(chan struct{})}
	r.known[token] = mine
	r.order = append(r.order, token)
	if len(r.order) > maxReceipts {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	return mine, nil
}

func (r *receipts) settle(token string, mine *receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mine.err != nil && r.known[token] == mine {
		delete(r.known, token)
		r.order = slices.DeleteFunc(r.order, func(t string) bool { return t == token })
	}
	close(mine.done)
}
