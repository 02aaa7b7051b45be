package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/drover-run/drover/pkg/store"
)

// Ext is the extension of the paths that a Driver lists.
const Ext = ".mem"

// Driver keeps whole stores in RAM, by path, as long as it lives itself. The
// zero value is an empty one; two Drivers share nothing.
type Driver struct {
	mu      sync.Mutex
	shelves map[string]*shelf
}

// shelf is one store: what is left of it when nobody owns it.
type shelf struct {
	state *State
	fence int64
	owner *store.Lease
	freed chan struct{} // closed when the owner goes
}

// Name returns "memory".
func (d *Driver) Name() string { return "memory" }

// Ext returns ".mem".
func (d *Driver) Ext() string { return Ext }

// Build puts a whole new store at path; the caller closes the snapshot.
func (d *Driver) Build(_ context.Context, path string, snap *store.Snapshot, o store.BuildOptions) error {
	state, err := FromSnapshot(snap)
	if err != nil {
		return fmt.Errorf("build %s: %w", path, err)
	}
	path = filepath.Clean(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.shelves[path]; there && !o.Replace {
		return fmt.Errorf("build %s: %w", path, store.ErrExists)
	}
	if d.shelves == nil {
		d.shelves = make(map[string]*shelf)
	}
	d.shelves[path] = &shelf{state: state}
	return nil
}

// find returns the store at path; the lock is held.
func (d *Driver) find(op, path string) (*shelf, error) {
	s, ok := d.shelves[filepath.Clean(path)]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: path, Err: fs.ErrNotExist}
	}
	return s, nil
}

// Open takes ownership of the store at path.
func (d *Driver) Open(ctx context.Context, path string, o store.OpenOptions) (store.Backend, error) {
	now := o.Now
	if now == nil {
		now = store.SystemNow
	}
	b := &backend{driver: d, path: filepath.Clean(path), now: now}
	err := d.own(ctx, "open", path, o, func(s *shelf) error {
		h := s.state.Header()
		if h.StorageVersion > store.StorageVersion {
			return &store.NewerVersion{Path: path, Found: h.StorageVersion, Supported: store.StorageVersion}
		}
		s.fence++
		s.owner = lease(s.fence, now(), o.Describe(b.path, s.fence))
		s.freed = make(chan struct{})
		s.state = s.state.clone()
		b.shelf, b.State = s, s.state
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func lease(fence, now int64, info store.OwnerInfo) *store.Lease {
	host, _ := os.Hostname()
	return &store.Lease{
		OwnerID: store.NewIDs(store.SystemNow, nil).NewID(), Fence: fence, Host: host, PID: os.Getpid(),
		Since: now, Live: true, Command: info.Command, Socket: info.Socket,
	}
}

// own runs take with the lock held once the store has no owner.
func (d *Driver) own(ctx context.Context, op, path string, o store.OpenOptions, take func(*shelf) error) error {
	timer := time.NewTimer(o.Wait)
	defer timer.Stop()
	for {
		freed, err := d.try(op, path, take)
		if freed == nil {
			return err
		}
		select {
		case <-freed:
		case <-timer.C:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try runs take, or returns what to wait for and why.
func (d *Driver) try(op, path string, take func(*shelf) error) (freed <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find(op, path)
	if err != nil {
		return nil, err
	}
	if s.owner != nil {
		return s.freed, &store.Held{Path: path, Lease: *s.owner}
	}
	return nil, take(s)
}

// View reads the store as it is now.
func (d *Driver) View(_ context.Context, path string) (store.Reader, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find("view", path)
	if err != nil {
		return nil, err
	}
	return view{s.state.clone()}, nil
}

type view struct{ *State }

func (v view) Close() error {
	v.State.Close()
	return nil
}

// Header returns the header of the store at path.
func (d *Driver) Header(_ context.Context, path string) (store.Header, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find("read header of", path)
	if err != nil {
		return store.Header{}, err
	}
	return s.state.Header(), nil
}

// Lease tells who owns the store.
func (d *Driver) Lease(_ context.Context, path string) (*store.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find("read lease of", path)
	if err != nil || s.owner == nil {
		return nil, err
	}
	l := *s.owner
	return &l, nil
}

// Claim takes ownership of a store to remove it.
func (d *Driver) Claim(ctx context.Context, path string, o store.OpenOptions) (store.Claim, error) {
	b, err := d.Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return claimed{b.(*backend)}, nil
}

type claimed struct{ *backend }

// Remove removes the store.
func (c claimed) Remove(context.Context) error {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	delete(c.driver.shelves, c.path)
	return nil
}

// Delete removes a store that nobody owns.
func (d *Driver) Delete(ctx context.Context, path string, o store.OpenOptions) error {
	c, err := d.Claim(ctx, path, o)
	if err != nil {
		return err
	}
	return store.DeleteClaimed(ctx, c)
}

// List returns the paths of the stores directly in dir.
func (d *Driver) List(_ context.Context, dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for path := range d.shelves {
		if filepath.Dir(path) == filepath.Clean(dir) && filepath.Ext(path) == Ext {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out, nil
}

// backend is an owned store.
type backend struct {
	*State
	driver  *Driver
	path    string
	shelf   *shelf
	now     func() int64
	commits store.Line
	once    sync.Once
}

// Commit applies one transaction.
func (b *backend) Commit(ctx context.Context, tx store.Tx) (res store.CommitResult, err error) {
	err = b.commits.Do(ctx, func() error {
		records, r, err := store.Prepare(tx, b.Base(b.now()))
		if err != nil {
			return err
		}
		for i := range records {
			records[i].Detach()
		}
		r.Stats = b.Apply(records, nil, r.Timestamp)
		res = r
		return nil
	})
	return res, err
}

// Check reports a store that was deleted or replaced.
func (b *backend) Check(ctx context.Context) error {
	return b.commits.Do(ctx, func() error {
		b.driver.mu.Lock()
		defer b.driver.mu.Unlock()
		s, err := b.driver.find("check", b.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &store.Lost{Path: b.path, Reason: "deleted"}
		case s != b.shelf:
			return &store.Lost{Path: b.path, Reason: "replaced"}
		}
		return nil
	})
}

// Close drains admitted commits and gives the store up.
func (b *backend) Close() error {
	<-b.commits.Seal(store.ErrClosed)
	b.once.Do(func() {
		b.State.Close()
		b.driver.mu.Lock()
		defer b.driver.mu.Unlock()
		b.shelf.owner = nil
		close(b.shelf.freed)
	})
	return nil
}
