package jsonl

import (
	"context"
	"fmt"
)

// Mend cuts the torn tail off, as the first commit would (D15), and removes the
// temporary files of interrupted replacements.
func (b *backend) Mend(ctx context.Context) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	if b.broken != nil {
		return b.broken
	}
	if b.end > b.size {
		if err := b.file.Truncate(b.size); err != nil {
			return fmt.Errorf("cut torn tail: %w", err)
		}
		b.end = b.size
		if err := b.file.Sync(); err != nil {
			return fmt.Errorf("cut torn tail: %w", err)
		}
	}
	return sweep(b.fs, b.path)
}
