package sqlite

import (
	"context"
	"strings"
)

// Mend makes SQLite's own indexes anew, those that are missing too, and removes
// the temporary files of interrupted replacements.
func (b *backend) Mend(ctx context.Context) error {
	return b.alone(ctx, func(h *handle) (*handle, error) {
		if b.broken != nil {
			return h, b.broken
		}
		if err := b.owned(h, h.remakeIndexes); err != nil {
			return h, err
		}
		return h, b.driver.sweep(b.path)
	})
}

func (h *handle) remakeIndexes() error {
	for statement := range strings.SplitSeq(sqlIndexes, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if err := h.run(strings.Replace(statement, "INDEX ", "INDEX IF NOT EXISTS ", 1)); err != nil {
			return err
		}
	}
	return h.run("REINDEX")
}
