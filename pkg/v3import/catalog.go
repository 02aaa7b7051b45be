package v3import

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/store"
)

// Target is where a batch puts its sessions; *store.Repo is one.
type Target interface {
	// Import writes a whole prepared session, or fails with store.ErrExists when
	// its id is taken and o.Replace is not set.
	Import(ctx context.Context, snap *store.Snapshot, o store.ImportOptions) (store.Ref, error)
	// List gives the headers of the sessions that are there.
	List(ctx context.Context) ([]store.Listed, error)
	// View reads a session that is there.
	View(ctx context.Context, ref store.Ref) (store.Reader, error)
}

// origin is an imported session and what it came from.
type origin struct {
	session string
	ref     store.Ref // none of what a dry run would have imported
	id      string    // of the legacy header
	digest  string
	bytes   int64
	path    string
	ours    bool // imported by this batch
}

// catalog knows what a target holds.
type catalog struct {
	mu       sync.Mutex
	sessions map[string]origin   // by id; of one not imported, the zero origin
	origins  map[string][]origin // by legacy id
	paths    map[string]origin   // by the path of the source, as it was when loaded
	names    map[string][]origin // by its file name
}

func (c *catalog) load(ctx context.Context, t Target) error {
	listed, err := t.List(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ours := make(map[string]bool)
	for _, os := range c.origins {
		for _, o := range os {
			ours[o.session] = ours[o.session] || o.ours
		}
	}
	c.sessions, c.origins = make(map[string]origin), make(map[string][]origin)
	c.paths, c.names = make(map[string]origin), make(map[string][]origin)
	for _, l := range listed {
		o, ok := originOf(l.Header)
		c.sessions[l.Ref.ID] = o
		if ok {
			o.session, o.ref, o.ours = l.Ref.ID, l.Ref, ours[l.Ref.ID]
			c.origins[o.id] = append(c.origins[o.id], o)
			if o.path == "" {
				continue // it came in a pipe
			}
			c.paths[o.path] = o
			c.names[baseName(o.path)] = append(c.names[baseName(o.path)], o)
		}
	}
	return nil
}

func originOf(h store.Header) (origin, bool) {
	var o origin
	if format, _ := rawjson.GetString(h.Source, "format"); format != "v3" {
		return o, false
	}
	o.id, _ = rawjson.GetString(h.Source, "id")
	o.digest, _ = rawjson.GetString(h.Source, "sha256")
	o.bytes, _ = rawjson.GetInt(h.Source, "bytes")
	o.path, _ = rawjson.GetString(h.Source, "path")
	return o, o.id != ""
}

// note remembers a session that this batch imported.
func (c *catalog) note(o origin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.origins[o.id][:0:0]
	for _, old := range c.origins[o.id] {
		if old.session != o.session {
			kept = append(kept, old)
		}
	}
	c.origins[o.id] = append(kept, o)
	c.sessions[o.session] = o
}

// relation says how a file stands to what is there.
type relation int

const (
	relNew      relation = iota // nothing of this id was imported
	relSame                     // this very content was
	relGrown                    // its beginning was
	relConflict                 // other content of the same id was
)

// relate finds the imported session that a file is about.
func (c *catalog) relate(f *candidate) (relation, origin) {
	c.mu.Lock()
	known := append([]origin(nil), c.origins[f.id]...)
	c.mu.Unlock()
	for _, o := range known {
		if o.digest == f.digest {
			return relSame, o
		}
	}
	for _, o := range known {
		if o.bytes < f.size && o.digest == prefixDigest(f.Path, o.bytes) {
			return relGrown, o
		}
	}
	if len(known) > 0 {
		return relConflict, known[0]
	}
	return relNew, origin{}
}

func (c *catalog) taken(session string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.sessions[session]
	return ok
}

// session is what a session was imported from; false when it was not imported or
// is not there.
func (c *catalog) session(id string) (origin, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.sessions[id]
	return o, o.id != ""
}

// byPath finds the session imported from a path, or from a file of its name;
// more than one of that name is none.
func (c *catalog) byPath(path string) (o origin, exact bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.paths[path]; ok {
		return o, true
	}
	if same := c.names[baseName(path)]; len(same) == 1 {
		return same[0], false
	}
	return origin{}, false
}

// prefixDigest is the SHA-256 of the first n bytes of a file, "" when there are
// not so many.
func prefixDigest(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	sum, err := digest(io.ReaderAt(f), n)
	if err != nil {
		return ""
	}
	return sum
}

// baseName is the last element of a path of either system.
func baseName(p string) string {
	if i := strings.LastIndexAny(p, `/\`); i >= 0 {
		return p[i+1:]
	}
	return filepath.Base(p)
}
