package jsonl

import (
	"context"
	"errors"

	"github.com/drover-run/drover/pkg/store"
	"github.com/drover-run/drover/pkg/store/memory"
	"github.com/drover-run/drover/pkg/v3import"
)

// legacyReader is a coding-agent file, normalized in memory.
type legacyReader struct{ *memory.State }

// legacyView reads a coding-agent file as a session, without changing it (D58).
func legacyView(ctx context.Context, path string) (store.Reader, error) {
	s, err := v3import.Read(ctx, path, v3import.Options{})
	if err != nil {
		return nil, err
	}
	state, err := memory.FromSnapshot(s.Snapshot())
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return legacyReader{state}, nil
}

func (r legacyReader) Close() error {
	r.State.Close()
	return nil
}
