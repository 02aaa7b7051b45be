package jsonl

import (
	"context"
	"time"

	"github.com/drover-run/drover/internal/fsx"
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// courtesy is how long a lock that looks held is looked at again: a reader that
// asks who owns it holds it for an instant, a dying process a little longer
// (D22).
const courtesy = 250 * time.Millisecond

// owner is what the lock file tells about who holds the lock (D16).
type owner struct {
	id      string
	fence   int64
	process fsx.Process
	since   int64
	info    store.OwnerInfo
}

func (o owner) appendJSON(dst []byte) []byte {
	texts := []struct{ key, text string }{
		{"host", o.process.Host}, {"bootId", o.process.BootID}, {"pidNs", o.process.PIDNS},
		{"command", o.info.Command}, {"socket", o.info.Socket},
	}
	numbers := []struct {
		key string
		n   int64
	}{{"fence", o.fence}, {"pid", int64(o.process.PID)}, {"pidStart", o.process.Start}, {"since", o.since}}
	dst = rawjson.AppendQuote(append(dst, `{"ownerId":`...), o.id)
	for _, f := range numbers {
		dst = rawjson.AppendQuote(append(dst, ','), f.key)
		dst = rawjson.AppendInt(append(dst, ':'), f.n)
	}
	for _, f := range texts {
		dst = rawjson.AppendQuote(append(dst, ','), f.key)
		dst = rawjson.AppendQuote(append(dst, ':'), f.text)
	}
	return append(dst, '}', '\n')
}

// parseOwner reads what it can: the content of a lock file decides nothing, so
// nothing about it is an error (bugs B15, B16). Text after the object is the
// rest of an earlier, longer one.
func parseOwner(b []byte) owner {
	end, serr := rawjson.Skip(b, 0)
	if serr != nil {
		return owner{}
	}
	b = b[:end]
	text := func(key string) string {
		s, _ := rawjson.GetString(b, key)
		return s
	}
	number := func(key string) int64 {
		n, _ := rawjson.GetInt(b, key)
		return n
	}
	return owner{
		id:    text("ownerId"),
		fence: number("fence"),
		process: fsx.Process{
			Host: text("host"), BootID: text("bootId"), PIDNS: text("pidNs"),
			PID: int(number("pid")), Start: number("pidStart"),
		},
		since: number("since"),
		info:  store.OwnerInfo{Command: text("command"), Socket: text("socket")},
	}
}

func (o owner) lease() store.Lease {
	return store.Lease{
		OwnerID: o.id, Fence: o.fence, Host: o.process.Host, PID: o.process.PID, Since: o.since, Live: true,
		Command: o.info.Command, Socket: o.info.Socket,
	}
}

func lockPath(path string) string { return path + ".lock" }

// acquire takes the lock of the store at path, waiting as long as asked to. The
// lock of a dead process is free at once.
func acquire(ctx context.Context, path string, wait time.Duration) (*fsx.Lock, error) {
	patience := time.NewTimer(max(wait, courtesy))
	defer patience.Stop()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		lock, err := fsx.TryLock(lockPath(path))
		if lock != nil || err != nil {
			return lock, err
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, context.Cause(ctx)
		case <-patience.C:
			again.Stop()
			lease, err := probe(ctx, path)
			if err != nil {
				return nil, err
			}
			if lease != nil {
				return nil, &store.Held{Path: path, Lease: *lease}
			}
			patience.Reset(courtesy) // it was let go this very moment
		}
	}
}

// probe tells who holds the lock of the store at path, nil for nobody. A new
// owner locks before it can write who it is; for that moment the file names one
// who is gone.
func probe(ctx context.Context, path string) (*store.Lease, error) {
	for tries := 0; ; tries++ {
		held, info, err := fsx.Probe(lockPath(path))
		if err != nil || !held {
			return nil, err
		}
		o := parseOwner(info)
		if tries == 10 || (o.process.PID > 0 && !o.process.Gone()) {
			lease := o.lease()
			return &lease, nil
		}
		pause := time.NewTimer(5 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
	}
}
