package scripted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-run/drover/internal/fsx"
)

const (
	lockWait  = 10 * time.Second     // for other processes, which hold the lock for an instant
	lockRetry = 2 * time.Millisecond // between two attempts
)

// position is the durable place in a script, shared by all processes that use
// it (D50).
type position struct {
	script string // as named, for errors
	path   string // of the state file
	digest string // SHA-256 of the script, in hex
}

// state is the content of a state file.
type state struct {
	Digest string `json:"digest"`
	Next   int    `json:"next"` // index of the response that the next request gets
}

// newPosition locates the position of a script. In a folder of its own, scripts
// of the same name from different places must not share one: the file is then
// named after the whole path.
func newPosition(stateDir, script string, text []byte) (*position, error) {
	sum := sha256.Sum256(text)
	p := &position{script: script, path: script + ".state", digest: hex.EncodeToString(sum[:])}
	if stateDir == "" {
		return p, nil
	}
	abs, err := filepath.Abs(script)
	if err != nil {
		return nil, fmt.Errorf("locate script %s: %w", script, err)
	}
	where := sha256.Sum256([]byte(abs))
	p.path = filepath.Join(stateDir, filepath.Base(abs)+"-"+hex.EncodeToString(where[:6])+".state")
	return p, nil
}

// prepare makes sure that the position can be kept, and starts it over when it
// belongs to another content of the script.
func (p *position) prepare(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(p.path), fsx.DirMode); err != nil {
		return p.failed(err)
	}
	return p.locked(ctx, func() error {
		s, err := p.read()
		if err != nil || s.Digest == p.digest {
			return err
		}
		return p.write(state{Digest: p.digest})
	})
}

// take returns the index of the next response and moves on, unless there are no
// more than that many responses. Each index is given out once, whoever asks.
func (p *position) take(ctx context.Context, responses int) (next int, err error) {
	err = p.locked(ctx, func() error {
		s, err := p.read()
		if err != nil {
			return err
		}
		if s.Digest == p.digest {
			next = s.Next
		}
		if next >= responses {
			return nil
		}
		return p.write(state{Digest: p.digest, Next: next + 1})
	})
	return next, err
}

// locked runs fn while no other process moves the position. The lock file is
// gone afterwards.
func (p *position) locked(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, errors.New("another process holds its lock"))
	defer cancel()
	for {
		l, err := fsx.TryLock(p.path + ".lock")
		if err != nil {
			return p.failed(err)
		}
		if l != nil {
			if err := errors.Join(fn(), l.Remove()); err != nil {
				return p.failed(err)
			}
			return nil
		}
		if !wait(ctx, lockRetry) {
			return p.failed(context.Cause(ctx))
		}
	}
}

func (p *position) failed(err error) error {
	return fmt.Errorf("keep position of script %s: %w", p.script, err)
}

// read returns the zero state when there is no state file.
func (p *position) read() (state, error) {
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return state{}, fmt.Errorf("decode %s: %w", p.path, err)
	}
	if s.Next < 0 {
		return state{}, fmt.Errorf("decode %s: next is negative", p.path)
	}
	return s, nil
}

func (p *position) write(s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return fsx.Replace(fsx.OS{}, p.path, fsx.ReplaceOptions{Existing: true}, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
