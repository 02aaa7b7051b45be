package jsonl

import (
	"context"

	"github.com/drover-run/drover/pkg/store"
)

// legacyView reads a coding-agent file as a session, without changing it (spec
// Appendix B, D58).
func legacyView(_ context.Context, path string) (store.Reader, error) {
	return nil, &store.Legacy{Path: path}
}
